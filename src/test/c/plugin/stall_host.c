/*
 * Makes ranks stall for one known reason. RANKS processes form a ring. Each has one connection per channel to the next
 * process. Kernels run one operation after the other over these connections, as NCCL's kernels do in a ring. Usage:
 * LIBRARY WAY RANKS CHANNELS VICTIM OPERATION PATTERN. WAY is the victim's behavior at that operation:
 * - launch: the victim does not launch the operation.
 * - stop, kill: the victim's process is stopped or killed; stopped before it connects if OPERATION is 0.
 * - consume: the victim launches the operation, but the kernel never begins.
 * - disagree: the victim's operation has one chunk more. After the next operation no rank launches another.
 * - wire: the victim does nothing special. The network has a fault, which the environment configures.
 * - healthy: the victim does nothing special. Ranks pause at random, and all complete.
 *
 * PATTERN is ring (a kernel sends after it has received) or stream (a kernel sends and receives at the same time). The
 * program prints STILL when no rank has completed anything for a while. It runs until its standard input is closed.
 */
#define _GNU_SOURCE
#include "ring.h"

#include <signal.h>
#include <sys/prctl.h>

#define MOST_RANKS 8
#define CHUNKS 3
#define PIECE 512
#define SEED 0x57a11
#define STILL_MILLISECONDS 1500
#define HEALTHY_OPERATIONS 40
#define ENDLESS 1000000000L
#define COMMUNICATOR 0x1234 /* value that net_init passes */

static const char *way, *pattern;
static int ranks, channels, victim, self;
static long faulty;
static struct rank rank;
static pid_t pids[MOST_RANKS];
static volatile int never;
static volatile long launched, completed[2 * MAX_CHANNELS];

/* State that all processes share: the number of completed operations per rank, and the number of ready operations. */
static struct {
  volatile long completed[MOST_RANKS];
  volatile int ready;
} *shared;

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

static int here(long operation) {
  return self == victim && operation == faulty;
}

static long last_operation(void) {
  return is("healthy") ? HEALTHY_OPERATIONS : is("disagree") ? faulty + 1 : ENDLESS;
}

static int chunks_of(long operation) {
  return CHUNKS + (is("disagree") && here(operation));
}

static int move_piece(struct kernel *kernel) {
  struct piece piece = {SIMPLE, 1, PIECE, SEED};
  return kernel->on->sends ? send_piece(kernel, &piece) : receive_piece(kernel, &piece);
}

/* Waits until an operation is launched. A victim in the mode "consume" waits forever. */
static void begin_operation(long operation) {
  while (launched < operation || (is("consume") && here(operation)))
    usleep(200);
}

/* Runs one direction of a channel. */
static void *stream(void *argument) {
  struct kernel *kernel = argument;
  for (long operation = 1; operation <= last_operation(); operation++) {
    begin_operation(operation);
    for (int i = 0; i < chunks_of(operation); i++)
      if (!move_piece(kernel))
        return NULL;
    completed[2 * kernel->on->channel + kernel->on->sends] = operation;
  }
  return NULL;
}

/* Runs both directions of a channel in turns. */
static void *ring(void *argument) {
  struct kernel *both = argument;
  for (long operation = 1; operation <= last_operation(); operation++) {
    begin_operation(operation);
    for (int i = 0; i < chunks_of(operation); i++)
      if (!move_piece(&both[1]) || !move_piece(&both[0]))
        return NULL;
    completed[2 * both->on->channel] = completed[2 * both->on->channel + 1] = operation;
  }
  return NULL;
}

static long completed_here(void) {
  long least = ENDLESS;
  for (int i = 0; i < 2 * channels; i++)
    if (completed[i] < least)
      least = completed[i];
  return least;
}

static void launch(const ncclProfiler_v6_t *profiler, void *context, long operation) {
  ncclProfilerEventDescr_v6_t event = {.type = ncclProfileColl, .rank = self};
  void *handle = NULL;
  event.event.coll = (ncclProfilerColl_v5_t){.seqNumber = (uint64_t)operation, .func = "AllReduce",
                                             .count = (size_t)(chunks_of(operation) * channels * PIECE / 4),
                                             .datatype = "ncclFloat32", .nChannels = (uint8_t)channels,
                                             .algo = "RING", .proto = "SIMPLE"};
  SUCCEEDS(profiler->startEvent(context, &handle, &event));
  launched = operation;
  if (handle)
    SUCCEEDS(profiler->stopEvent(handle));
}

static void run(const char *path, int next, int previous) {
  void *library = open_plugin(path), *context = NULL;
  const ncclProfiler_v6_t *profiler = symbol(library, "ncclProfiler_v6");
  static struct kernel kernels[2 * MAX_CHANNELS];
  uint64_t random = (uint64_t)(SEED + self);
  int mask = -1;
  rank = (struct rank){.net = symbol(library, TABLE_NAME), .number = self, .channels = channels};
  SUCCEEDS(net_init(rank.net, &rank.ctx));
  SUCCEEDS(profiler->init(&context, COMMUNICATOR, &mask, "", ranks, ranks, self, logger));
  REQUIRE(mask == (ncclProfileColl | ncclProfileP2p), "mask %d", mask);
  if (here(0) && is("stop"))
    raise(SIGSTOP);
  connect_ring(&rank, next, previous, 0);
  __atomic_add_fetch(&shared->ready, 1, __ATOMIC_ACQ_REL);
  while (shared->ready < ranks)
    usleep(500);
  for (int i = 0; i < 2 * channels; i++) {
    kernels[i] = (struct kernel){.on = &rank.connections[i], .rank = self, .jitter = SEED + (uint64_t)i, .stop = &never};
    if (strcmp(pattern, "stream") == 0)
      pthread_create(&kernels[i].thread, NULL, stream, &kernels[i]);
    else if (i % 2 == 0)
      pthread_create(&kernels[i].thread, NULL, ring, &kernels[i]);
  }
  for (long operation = 1; operation <= last_operation(); operation++) {
    if (here(operation) && is("launch"))
      for (;;)
        pause();
    launch(profiler, context, operation);
    if (here(operation) && is("stop"))
      raise(SIGSTOP);
    if (here(operation) && is("kill"))
      raise(SIGKILL);
    if (is("healthy") && next_random(&random) % 4 == 0)
      usleep((useconds_t)(next_random(&random) % 200000));
    /* The program launches at most two operations before the first of them is complete. */
    while (completed_here() < operation - 1) {
      shared->completed[self] = completed_here();
      usleep(200);
    }
  }
  while (completed_here() < last_operation()) {
    shared->completed[self] = completed_here();
    usleep(1000);
  }
  shared->completed[self] = completed_here();
  for (;;)
    pause();
}

static long completed_by_all(void) {
  long sum = 0;
  for (int i = 0; i < ranks; i++)
    sum += shared->completed[i];
  return sum;
}

static void await_stillness(void) {
  long last = -1, since = now_milliseconds();
  int gone = 0; /* whether the victim has ended or is stopped, possibly before any rank has completed an operation */
  for (;;) {
    long now = completed_by_all();
    gone |= waitpid(pids[victim], NULL, WNOHANG | WUNTRACED) == pids[victim];
    if (shared->ready < ranks || now != last || (now == 0 && !gone)) {
      last = now;
      since = now_milliseconds();
    }
    if (now_milliseconds() - since > STILL_MILLISECONDS)
      return;
    usleep(10000);
  }
}

int main(int count, char **arguments) {
  int ends[MOST_RANKS][2];
  REQUIRE(count == 8, "usage: LIBRARY launch|stop|kill|consume|disagree|wire|healthy RANKS CHANNELS VICTIM OPERATION "
                      "ring|stream");
  way = arguments[2];
  ranks = atoi(arguments[3]);
  channels = atoi(arguments[4]);
  victim = atoi(arguments[5]);
  faulty = atol(arguments[6]);
  pattern = arguments[7];
  REQUIRE(ranks >= 2 && ranks <= MOST_RANKS && channels >= 1 && channels <= MAX_CHANNELS, "ranks, channels");
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "no shared memory");
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
      if (i != victim)
        unsetenv("MILLRACE_FAULT");
      move_to_host(self);
      run(arguments[1], ends[i][0], ends[(i + ranks - 1) % ranks][1]);
    }
    printf("rank %d is pid %d\n", i, (int)pids[i]);
  }
  await_stillness();
  printf("STILL\n");
  fflush(stdout);
  while (getchar() != EOF)
    ;
  for (int i = 0; i < ranks; i++)
    kill(pids[i], SIGKILL);
  for (int i = 0; i < ranks; i++)
    waitpid(pids[i], NULL, 0);
  return 0;
}
