/* Calls the plugin on a stack that cannot run Java. Usage: LIBRARY thread|coroutine KIB. */
#define NET_VERSION 11
#include "versions.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

static const net_t *net;
static ucontext_t outside, inside;

static void call(void) {
  void *context = NULL;
  int devices = 0;
  ncclResult_t result = net_init(net, &context);
  printf("RESULT %d\n", result);
  if (result == ncclSuccess)
    SUCCEEDS(net->devices(&devices));
  SUCCEEDS(net->finalize(context));
}

static void *run(void *unused) {
  call();
  return unused;
}

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY thread|coroutine KIB");
  size_t bytes = strtoul(arguments[3], NULL, 10) << 10;
  net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  if (!strcmp(arguments[2], "thread")) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0, "no such stack");
    REQUIRE(pthread_create(&thread, &attributes, run, NULL) == 0, "no thread");
    REQUIRE(pthread_join(thread, NULL) == 0, "not joined");
  } else {
    REQUIRE(getcontext(&inside) == 0, "no context");
    inside.uc_link = &outside;
    inside.uc_stack.ss_size = bytes;
    inside.uc_stack.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(inside.uc_stack.ss_sp != MAP_FAILED, "out of memory");
    makecontext(&inside, call, 0);
    REQUIRE(swapcontext(&outside, &inside) == 0, "no coroutine");
  }
  /* On the program's own stack the call succeeds. */
  call();
  return 0;
}
