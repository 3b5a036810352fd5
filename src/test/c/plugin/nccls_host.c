/*
 * Runs several NCCLs in one process at the same time. Usage: HOST ARGUMENTS -- HOST ARGUMENTS ... Each HOST is a host
 * program that was compiled as a library (-shared -fPIC -Dmain=play). It has its own logger and version. With UNLOADS
 * they run one after the other, and each is unloaded. The plugin then reports an error. With NAMESPACE each has its own
 * namespace of libraries.
 */
#define _GNU_SOURCE
#include "host.h"

#include <pthread.h>

#define MOST 4

struct nccl {
  int count;
  char **arguments;
  void *library;
  pthread_t thread;
};

static void *play(void *argument) {
  struct nccl *nccl = argument;
#ifdef NAMESPACE
  nccl->library = dlmopen(LM_ID_NEWLM, nccl->arguments[0], RTLD_NOW);
  REQUIRE(nccl->library, "%s", dlerror());
#else
  nccl->library = open_plugin(nccl->arguments[0]);
#endif
  int (*host)(int, char **) = symbol(nccl->library, "play");
  REQUIRE(host(nccl->count, nccl->arguments) == 0, "%s failed", nccl->arguments[0]);
  return NULL;
}

int main(int count, char **arguments) {
  struct nccl nccls[MOST] = {{0}};
  int all = 0;
  for (int i = 1; i < count; i++) {
    REQUIRE(all < MOST, "too many");
    if (strcmp(arguments[i], "--") == 0) {
      arguments[i] = NULL;
      all++;
    } else if (nccls[all].count++ == 0) {
      nccls[all].arguments = &arguments[i];
    }
  }
  all++;
#ifdef UNLOADS
  for (int i = 0; i < all; i++) {
    play(&nccls[i]);
    REQUIRE(dlclose(nccls[i].library) == 0, "%s", dlerror());
  }
  const ncclNet_v12_t *net = symbol(open_plugin(nccls[0].arguments[1]), "ncclNetPlugin_v12");
  REQUIRE(net->closeListen(NULL) == ncclInvalidArgument, "a null listener");
#else
  for (int i = 0; i < all; i++)
    pthread_create(&nccls[i].thread, NULL, play, &nccls[i]);
  for (int i = 0; i < all; i++)
    pthread_join(nccls[i].thread, NULL);
#endif
  printf("ALL OK\n");
  (void)logger;
  return 0;
}
