/* Two ranks of one communicator, either in two processes or on two threads of one process. */
#ifndef MILLRACE_TEST_COMMUNICATOR_H
#define MILLRACE_TEST_COMMUNICATOR_H

#include "receive_kernel.h"
#include "send_kernel.h"

#include <sys/wait.h>

#define RANKS 2

/* A rank's program, from init to finalize. */
typedef void (*rank_function)(struct rank *);

struct rank_thread {
  struct rank rank;
  rank_function run;
};

static inline void *run_rank(void *argument) {
  struct rank_thread *thread = argument;
  SUCCEEDS(net_init(thread->rank.net, &thread->rank.ctx));
  thread->run(&thread->rank);
  return NULL;
}

static inline void two_threads(const char *path, int channels, rank_function run) {
  int ends[RANKS];
  pthread_t threads[RANKS];
  struct rank_thread *ranks = calloc(RANKS, sizeof *ranks);
  void *library = open_plugin(path);
  const net_t *net = symbol(library, TABLE_NAME);
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
  for (int i = 0; i < RANKS; i++) {
    ranks[i] = (struct rank_thread){{.number = i, .net = net, .bootstrap = ends[i], .channels = channels}, run};
    pthread_create(&threads[i], NULL, run_rank, &ranks[i]);
  }
  for (int i = 0; i < RANKS; i++) {
    pthread_join(threads[i], NULL);
    close(ends[i]);
  }
  free(ranks);
  REQUIRE(dlclose(library) == 0, "%s", dlerror());
}

static inline void one_process(const char *path, int channels, rank_function run, int number, int bootstrap) {
  struct rank_thread *rank = calloc(1, sizeof *rank);
  void *library = open_plugin(path);
  *rank = (struct rank_thread){
      {.number = number, .net = symbol(library, TABLE_NAME), .bootstrap = bootstrap, .channels = channels}, run};
  run_rank(rank);
  free(rank);
  REQUIRE(dlclose(library) == 0, "%s", dlerror());
}

/* Gives rank 1 a different environment: the variable NAME_1 has rank 1's value of NAME. */
static inline void be_rank_1(const char *name) {
  char own[64];
  snprintf(own, sizeof own, "%s_1", name);
  if (getenv(own))
    setenv(name, getenv(own), 1);
}

/* Forks before either process has a JVM. In rank 0 it returns rank 1's status. */
static inline int two_processes(const char *path, int channels, rank_function run) {
  int ends[RANKS], status;
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
  fflush(NULL);
  pid_t child = fork();
  REQUIRE(child >= 0, "no process");
  int number = child == 0;
  close(ends[1 - number]);
  if (number == 1) {
    be_rank_1("MILLRACE_TAKEOVER");
    be_rank_1("NCCL_GDRCOPY_ENABLE");
  }
  one_process(path, channels, run, number, ends[number]);
  if (number == 1)
    exit(0);
  REQUIRE(waitpid(child, &status, 0) == child, "wait");
  return status;
}

/* Prepares kernels for all connections of a rank, in order. Even connections receive and odd ones send. */
static inline void prepare_kernels(struct rank *rank, struct kernel *kernels, long steps, uint64_t seed,
                                   volatile int *stop) {
  for (int i = 0; i < 2 * rank->channels; i++) {
    int sender = i % 2 ? rank->number : 1 - rank->number;
    uint64_t operations = data_word(seed, (size_t)(2 * (i / 2) + sender) + 1);
    kernels[i] = (struct kernel){.on = &rank->connections[i], .rank = rank->number, .steps = steps,
                                 .operations = operations, .jitter = data_word(operations, (size_t)i % 2 + 1),
                                 .stop = stop};
  }
}

static inline void start_kernel(struct kernel *kernel) {
  REQUIRE(pthread_create(&kernel->thread, NULL, kernel->on->sends ? send_kernel : receive_kernel, kernel) == 0,
          "no thread");
}

static inline void run_kernels(struct kernel *kernels, int count) {
  for (int i = 0; i < count; i++)
    start_kernel(&kernels[i]);
  for (int i = 0; i < count; i++)
    pthread_join(kernels[i].thread, NULL);
}

/* Prints the counts of the kernels of one direction. */
static inline void print_direction(const struct rank *rank, const struct kernel *kernels, int sends) {
  struct kernel some[MAX_CHANNELS];
  char what[64];
  for (int channel = 0; channel < rank->channels; channel++)
    some[channel] = kernels[2 * channel + sends];
  snprintf(what, sizeof what, "rank %d %s", rank->number, sends ? "sent" : "received");
  print_totals(what, some, rank->channels);
}

#endif
