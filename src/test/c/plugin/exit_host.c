/*
 * Ends with the plugin's JVM in the process, in the ways in which hosts end. Usage: LIBRARY
 * threads|return|exit|atexit|pipe.
 */
#define NET_VERSION 11
#include "versions.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 32
#define SMALL_STACK (256 << 10)

static const net_t *net;
static void *ctx;
static void *listenComm;
static volatile int busy;

static int threads_of_process(void) {
  char line[256];
  int threads = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "Threads: %d", &threads) == 1)
      break;
  fclose(status);
  return threads;
}

static void *call_and_end(void *unused) {
  properties_t properties;
  SUCCEEDS(net->getProperties(0, &properties));
  return unused;
}

static void *call_for_ever(void *unused) {
  for (;;) {
    properties_t properties;
    net->getProperties(0, &properties);
    busy = 1;
  }
  return unused;
}

/* NCCL creates and ends threads, some of them with small stacks. The JVM must release each of them. */
static void many_threads(void) {
  pthread_attr_t attributes;
  pthread_t threads[THREADS];
  int before = threads_of_process();
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, SMALL_STACK);
  for (int round = 0; round < 8; round++) {
    for (int i = 0; i < THREADS; i++)
      REQUIRE(pthread_create(&threads[i], &attributes, call_and_end, NULL) == 0, "thread");
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  /* The number of the JVM's threads depends on the machine. Joined threads may be counted for a moment longer. */
  int after = threads_of_process();
  REQUIRE(after < before + 2 * THREADS, "%d threads are left, there were %d", after, before);
}

static void *exit_elsewhere(void *unused) {
  exit(0);
  return unused;
}

/* Creates a pipe beside this process's trace, with the name of a further trace of this process. Prints the name. */
static void put_pipe(void) {
  char of_this_process[32], path[300] = "";
  snprintf(of_this_process, sizeof of_this_process, "-%d-", getpid());
  DIR *directory = opendir("/dev/shm");
  for (struct dirent *entry; !*path && directory && (entry = readdir(directory));) {
    const char *owner = strstr(entry->d_name, of_this_process), *kind = strstr(entry->d_name, ".trace");
    if (strncmp(entry->d_name, "millrace-", 9) == 0 && owner && kind)
      snprintf(path, sizeof path, "/dev/shm/millrace-fed%s", owner);
  }
  closedir(directory);
  REQUIRE(*path && mkfifo(path, 0600) == 0, "no trace, or no pipe %s", path);
  printf("%s\n", path);
}

static void end_at_exit(void) {
  SUCCEEDS(net->closeListen(listenComm));
  SUCCEEDS(net->finalize(ctx));
  printf("OK\n");
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY WAY");
  const char *way = arguments[2];
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  pthread_t thread;
  if (strcmp(way, "atexit") == 0)
    atexit(end_at_exit);
  net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  SUCCEEDS(net_init(net, &ctx));
  SUCCEEDS(net->listen(ctx, 0, handle, &listenComm));
  if (strcmp(way, "threads") == 0)
    many_threads();
  if (strcmp(way, "pipe") == 0)
    put_pipe();
  if (strcmp(way, "atexit") != 0)
    printf("OK\n");
  fflush(stdout);
  if (strcmp(way, "exit") == 0) {
    pthread_create(&thread, NULL, call_for_ever, NULL);
    while (!busy)
      ;
    pthread_create(&thread, NULL, exit_elsewhere, NULL);
    pause();
  }
  return 0;
}
