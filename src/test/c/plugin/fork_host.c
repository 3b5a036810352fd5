/* Starts the plugin and forks while it runs or while it starts. Usage: LIBRARY started|starting|unhandled. */
#define _GNU_SOURCE
#define NET_VERSION 11
#include "versions.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_SECONDS 20

static const net_t *net;
static void *context;
static ncclResult_t result;
static int done;

static void *start(void *unused) {
  (void)unused;
  result = net_init(net, &context);
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  return NULL;
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY started|starting|unhandled");
  int early = !strcmp(arguments[2], "starting");
  pthread_t thread;
  net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  REQUIRE(pthread_create(&thread, NULL, start, NULL) == 0, "no thread");
  if (early)
    /* The plugin loads the JVM with global visibility, and then starts it. */
    while (!dlsym(RTLD_DEFAULT, "JNI_CreateJavaVM"))
      let_others_run();
  else
    REQUIRE(pthread_join(thread, NULL) == 0, "not joined");
  REQUIRE(__atomic_load_n(&done, __ATOMIC_ACQUIRE) == !early, "the fault did not happen: done %d", done);
  fflush(stdout);
  pid_t child = !strcmp(arguments[2], "unhandled") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  REQUIRE(child >= 0, "no child");
  if (child == 0) {
    void *mine = NULL;
    int devices;
    alarm(PATIENCE_SECONDS); /* ends the process if it hangs */
    ncclResult_t refused = net_init(net, &mine);
    printf("CHILD %d %d\n", refused, net->devices(&devices));
    SUCCEEDS(net->finalize(mine));
    exit(0);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child, "no child");
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's status is %x", status);
  if (early)
    REQUIRE(pthread_join(thread, NULL) == 0, "not joined");
  if (result == ncclSuccess)
    SUCCEEDS(net->finalize(context));
  printf("RESULT %d\n", result);
  return 0;
}
