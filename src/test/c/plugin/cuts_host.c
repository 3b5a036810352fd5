/*
 * Runs ranks until they are told to end, even if their network fails meanwhile, and checks every byte. There are RANKS
 * processes. Each is on its own host if the test configures that. Usage: LIBRARY takeover|gin RANKS CHANNELS SEED.
 * - takeover: a ring of connections that are taken over. Kernels of all protocols send and receive over it at once.
 * - gin: kernels put to all other ranks and wait for their signals. They query the asynchronous error while they wait.
 *
 * A round is the same work on all ranks. The program prints "AT n" when all ranks have completed n rounds. When its
 * standard input is closed, all ranks stop after the same round and it prints "DONE n".
 */
#define _GNU_SOURCE
#include "ring.h"

#include "gin_queue.h" /* included after NCCL's enumerations, because it defines one of their names as a macro */
#include "nccl/gin_v14.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

#define MOST_RANKS 8
#define STEPS_PER_ROUND 40
/* Number of rounds that a rank may complete before all ranks have completed the first of them. */
#define AHEAD 4
#define SAYS_MILLISECONDS 10

/*
 * Each round has a put of any length and a short one. They alternate between two places, because a peer is at most one
 * round ahead.
 */
#define MOST_BYTES 100000
#define SHORT_AT 100032
#define SHORT_BYTES 64
#define PLACE 100096
#define PUTS_PER_ROUND 2
#define GIN_DEPTH 16
#define YIELDS_PER_QUESTION 4096

static int ranks, channels, self;
static uint64_t seed;
static volatile int never;

static struct {
  volatile long completed[MOST_RANKS];
  volatile long allowed;
  /* Set after the last change of allowed. */
  volatile int over;
  char handles[MOST_RANKS][NCCL_NET_HANDLE_MAXSIZE];
  pthread_barrier_t barrier;
} *shared;

/* Waits until a round may begin. Returns 0 if all ranks stop before that round. */
static int await_round(long round) {
  for (;;) {
    int over = __atomic_load_n(&shared->over, __ATOMIC_ACQUIRE);
    if (shared->allowed >= round)
      return 1;
    if (over)
      return 0;
    usleep(200);
  }
}

static uint64_t seed_of(int from, int to, long round) {
  return data_word(seed, (size_t)((round * MOST_RANKS + from) * MOST_RANKS + to) + 1);
}

/* The takeover */

static volatile long completed[2 * MAX_CHANNELS];

static void *half(void *argument) {
  struct kernel *kernel = argument;
  for (long round = 1; await_round(round); round++) {
    kernel->steps += STEPS_PER_ROUND;
    if (kernel->on->sends)
      send_kernel(kernel);
    else
      receive_kernel(kernel);
    completed[2 * kernel->on->channel + kernel->on->sends] = round;
    long least = round;
    for (int i = 0; i < 2 * channels; i++)
      if (completed[i] < least)
        least = completed[i];
    shared->completed[self] = least;
  }
  return NULL;
}

static void take_over(const char *path, int next, int previous) {
  void *library = open_plugin(path);
  struct kernel kernels[2 * MAX_CHANNELS];
  struct rank *rank = calloc(1, sizeof *rank);
  *rank = (struct rank){.net = symbol(library, TABLE_NAME), .number = self, .channels = channels};
  SUCCEEDS(net_init(rank->net, &rank->ctx));
  connect_ring(rank, next, previous, 0);
  for (int i = 0; i < 2 * channels; i++) {
    uint64_t operations = seed_of(i % 2 ? self : (self + ranks - 1) % ranks, i / 2, 0);
    kernels[i] = (struct kernel){.on = &rank->connections[i], .rank = self, .operations = operations,
                                 .jitter = data_word(operations, (size_t)i + 1), .stop = &never};
    pthread_create(&kernels[i].thread, NULL, half, &kernels[i]);
  }
  for (int i = 0; i < 2 * channels; i++)
    pthread_join(kernels[i].thread, NULL);
  for (int i = 0; i < 2 * channels; i++) {
    if (kernels[i].on->sends)
      check_all_sent(&kernels[i]);
    else
      check_sizes_untouched(&kernels[i]);
  }
  shared->completed[self] = shared->allowed;
  pthread_barrier_wait(&shared->barrier);
  tear_down(rank);
}

/* GIN */

static const ncclGin_v14_t *gin;
static void *gin_context;
static ncclGinProxyGpuCtx_v2_t *queues;
static uint64_t window;
static char *memory;

static void end_if_failed(void) {
  bool failed = false;
  SUCCEEDS(gin->queryLastError(gin_context, &failed));
  REQUIRE(!failed, "rank %d is told of an error", self);
}

static void yield_or_end(void) {
  static long yields;
  let_others_run();
  if (++yields % YIELDS_PER_QUESTION == 0)
    end_if_failed();
}

/* Returns the offset of a peer's data in a round: the source of the put to it, or (in) the destination of its put. */
static size_t place(int in, long round, int peer) {
  return (size_t)((in * 2 + round % 2) * ranks + peer) * PLACE;
}

static void lengths(int from, int to, long round, size_t bytes[PUTS_PER_ROUND]) {
  uint64_t random = seed_of(from, to, round) | 1;
  bytes[0] = random_length(&random, MOST_BYTES);
  bytes[1] = random_length(&random, SHORT_BYTES);
}

static void put_all(int peer, long round) {
  static const size_t at[PUTS_PER_ROUND] = {0, SHORT_AT};
  size_t bytes[PUTS_PER_ROUND], from = place(0, round, peer), to = place(1, round, self);
  lengths(self, peer, round, bytes);
  for (int i = 0; i < PUTS_PER_ROUND; i++) {
    for (size_t j = 0; j < bytes[i]; j += 8) {
      uint64_t word = data_word(seed_of(self, peer, round) + (uint64_t)i, j / 8);
      memcpy(memory + from + at[i] + j, &word, smaller(8, bytes[i] - j));
    }
    while (!gin_put(queues, window, peer, from + at[i], to + at[i], bytes[i], self))
      yield_or_end();
  }
}

/* Waits for a peer's puts of a round and checks them. The signal shows surplus puts, too: a peer is one round ahead. */
static void check_all(int peer, long round) {
  static const size_t at[PUTS_PER_ROUND] = {0, SHORT_AT};
  size_t bytes[PUTS_PER_ROUND], to = place(1, round, peer);
  uint64_t due = (uint64_t)round * PUTS_PER_ROUND, signal;
  while (!gin_reached(due, signal = __atomic_load_n(&queues->signals[peer], __ATOMIC_ACQUIRE)))
    yield_or_end();
  if (signal > due + PUTS_PER_ROUND) /* a failed communicator stores a high value, to release waiting kernels */
    end_if_failed();
  REQUIRE(signal <= due + PUTS_PER_ROUND, "rank %d: signal %lu of rank %d in round %ld", self, signal, peer, round);
  lengths(peer, self, round, bytes);
  for (int i = 0; i < PUTS_PER_ROUND; i++)
    for (size_t j = 0; j < bytes[i]; j += 8) {
      uint64_t word = data_word(seed_of(peer, self, round) + (uint64_t)i, j / 8);
      REQUIRE(memcmp(memory + to + at[i] + j, &word, smaller(8, bytes[i] - j)) == 0,
              "wrong data: rank %d from rank %d in round %ld, put %d of %zu bytes, word %zu", self, peer, round, i,
              bytes[i], j / 8);
    }
}

static void use_gin(const char *path) {
  void *ctx, *listenComm, *group, *handle, *all[MOST_RANKS];
  size_t bytes = 4 * (size_t)ranks * PLACE;
  int devices = 0;
  ncclNetDeviceHandle_t *deviceHandle = NULL;
  ncclGinConfig_v14_t config = {MOST_RANKS, 1, 1, GIN_DEPTH, -1, 2, 1};
  gin = symbol(open_plugin(path), "ncclGinPlugin_v14");
  SUCCEEDS(gin->init(&ctx, 0x77, logger));
  SUCCEEDS(gin->devices(&devices));
  SUCCEEDS(gin->listen(ctx, 0, shared->handles[self], &listenComm));
  pthread_barrier_wait(&shared->barrier);
  for (int peer = 0; peer < ranks; peer++)
    all[peer] = shared->handles[peer];
  SUCCEEDS(gin->connect(ctx, all, ranks, self, listenComm, &group));
  SUCCEEDS(gin->createContext(group, &config, &gin_context, &deviceHandle));
  SUCCEEDS(gin->closeListen(listenComm));
  memory = calloc(1, bytes);
  SUCCEEDS(gin->regMrSym(group, memory, bytes, NCCL_PTR_HOST, 0, &handle, (void **)&window));
  queues = deviceHandle->handle;
  for (long round = 1; await_round(round); round++) {
    for (int peer = 0; peer < ranks; peer++)
      if (peer != self)
        put_all(peer, round);
    for (int peer = 0; peer < ranks; peer++)
      if (peer != self)
        check_all(peer, round);
    shared->completed[self] = round;
  }
  for (int peer = 0; peer < ranks; peer++) { /* flush */
    while (__atomic_load_n(&queues->cis[peer], __ATOMIC_ACQUIRE) != queues->pis[peer])
      yield_or_end();
    REQUIRE(peer == self || queues->signals[peer] == (uint64_t)shared->allowed * PUTS_PER_ROUND,
            "rank %d: signal %lu of rank %d at the end", self, queues->signals[peer], peer);
  }
  pthread_barrier_wait(&shared->barrier);
  SUCCEEDS(gin->destroyContext(gin_context));
  SUCCEEDS(gin->deregMrSym(group, handle));
  SUCCEEDS(gin->closeColl(group));
  SUCCEEDS(gin->finalize(ctx));
}

static long least_completed(void) {
  long least = shared->completed[0];
  for (int i = 1; i < ranks; i++)
    if (shared->completed[i] < least)
      least = shared->completed[i];
  return least;
}

/* Returns whether the standard input has ended. */
static int told_to_end(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  char byte;
  return poll(&input, 1, 1) > 0 && read(0, &byte, 1) == 0;
}

/* Returns the number of ranks that have ended in an unexpected way. */
static int follow(pid_t *pids) {
  int running = ranks, failed = 0;
  long said = 0, when = 0;
  while (running > 0) {
    long least = least_completed();
    if (!shared->over) {
      int over = told_to_end();
      if (!over)
        shared->allowed = least + AHEAD;
      __atomic_store_n(&shared->over, over, __ATOMIC_RELEASE);
    } else {
      usleep(1000);
    }
    if (least > said && now_milliseconds() - when >= SAYS_MILLISECONDS) {
      printf("AT %ld\n", said = least);
      fflush(stdout);
      when = now_milliseconds();
    }
    for (int i = 0, status; i < ranks; i++)
      if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
        pids[i] = 0;
        running--;
        if (status) {
          failed++;
          printf("rank %d ended with %s %d\n", i, WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
          fflush(stdout);
        }
      }
  }
  return failed;
}

int main(int count, char **arguments) {
  int ends[MOST_RANKS][2];
  pid_t pids[MOST_RANKS];
  pthread_barrierattr_t among;
  REQUIRE(count == 6, "usage: LIBRARY takeover|gin RANKS CHANNELS SEED");
  ranks = atoi(arguments[3]);
  channels = atoi(arguments[4]);
  seed = strtoull(arguments[5], NULL, 0);
  REQUIRE(ranks >= 2 && ranks <= MOST_RANKS && channels >= 1 && channels <= MAX_CHANNELS, "ranks, channels");
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "no shared memory");
  pthread_barrierattr_init(&among);
  pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &among, (unsigned)ranks);
  for (int i = 0; i < ranks; i++)
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0, "no sockets");
  for (int i = 0; i < ranks; i++) {
    char number[16];
    fflush(NULL);
    pids[i] = fork();
    REQUIRE(pids[i] >= 0, "no process");
    if (pids[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      self = i;
      snprintf(number, sizeof number, "%d", i);
      setenv("RANK", number, 1);
      move_to_host(self);
      if (strcmp(arguments[2], "gin") == 0)
        use_gin(arguments[1]);
      else
        take_over(arguments[1], ends[i][0], ends[(i + ranks - 1) % ranks][1]);
      fflush(NULL);
      _exit(0);
    }
  }
  if (follow(pids) > 0)
    return 1;
  printf("DONE %ld\n", shared->allowed);
  return 0;
}
