/*
 * Calls the profiler plugin as libnccl does (src/plugin/profiler.cc of 2.30, and of 2.27 for v4). Two ranks each run on
 * a thread with a progress thread. They launch OPERATIONS groups of collectives, sends and receives, drawn from SEED.
 * Usage: LIBRARY OPERATIONS SEED. The program prints the events that each communicator's profiler was offered and
 * accepted. There are two communicators without kernel events and one that ends in the middle of a kernel. Two more
 * have kernel events, while NCCL reports that interrupted kernel's events late.
 */
#define _GNU_SOURCE
#include "event_tally.h"
#include "versions.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define MOST_TASKS 6
#define CHANNELS 3
#define QUEUE 64
/* Number of pauses of the program. During each of them, the threads that serve its operations may fall asleep. */
#define PAUSES 8
#define OPERATION_PAUSE_MICROSECONDS 2000
#define RANKS 2

typedef JOIN(ncclProfiler_v, PROFILER_VERSION, _t) profiler_t;
typedef JOIN(ncclProfilerEventDescr_v, PROFILER_VERSION, _t) event_t;
#if PROFILER_VERSION >= 7
#define api_of(what) ncclProfiler##what##_v7_t
#else
#define api_of(what) ncclProfiler##what##_v5_t
#endif
#define PROFILER_NAME "ncclProfiler_v" STRING(PROFILER_VERSION)

/* Events below an operation in NCCL's event tree. A profiler that requests one of them also receives the operation. */
#define BELOW (ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh | ncclProfileNetPlugin)

/* A collective, a send or a receive. */
struct task {
  const char *function;
  int collective;
  void *call;
  void *event;
};

/* A channel's part of a kernel. */
struct block {
  void *task;
  int channel;
  void *event;
};

struct communicator {
  void *context;
  int rank;
  uint64_t random;
  pthread_t progress;
  struct tally tallies[KINDS];
  /* Queue of kernel blocks for the progress thread, which begins and ends them in order. */
  struct block blocks[QUEUE];
  long appended, begun, ended;
  int closing, aborted;
};

static const struct {
  const char *name;
  int collective;
} functions[] = {{"AllReduce", 1}, {"AllGather", 1}, {"ReduceScatter", 1}, {"Broadcast", 1}, {"Reduce", 1},
                 {"Send", 0},      {"Recv", 0}};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static long drawn[FUNCTIONS];
static const profiler_t *plugin;
/* Event mask of the process. As in NCCL, each process has only one. */
static int mask;
static long operations;

/* NCCL's handles keep their previous content, so the plugin must set the handle of a declined event to null. */
static void start(struct communicator *communicator, enum kind kind, event_t *event, void **handle) {
  *handle = (void *)0x5a5a;
  event->rank = communicator->rank;
  SUCCEEDS(plugin->startEvent(communicator->context, handle, event));
  count_told(communicator->tallies, kind, *handle != NULL);
}

static void stop(struct communicator *communicator, enum kind kind, void *handle) {
  if (!handle)
    return;
  SUCCEEDS(plugin->stopEvent(handle));
  count_ended(communicator->tallies, kind);
}

/* Reports a call of the program to NCCL. v4 has no events for calls. */
static void call(struct communicator *communicator, struct task *task, int first, void **group) {
#if PROFILER_VERSION >= 5
  if (first) {
    event_t event = {.type = ncclProfileGroupApi, .event.groupApi = {.groupDepth = 1}};
    start(communicator, GROUP_API, &event, group);
  }
  event_t event = {.type = task->collective ? ncclProfileCollApi : ncclProfileP2pApi, .parentObj = *group};
  if (task->collective)
    event.event.collApi = (api_of(CollApi)){.func = task->function, .count = 64, .datatype = "ncclFloat32"};
  else
    event.event.p2pApi = (api_of(P2pApi)){.func = task->function, .count = 64, .datatype = "ncclFloat32"};
  enum kind kind = task->collective ? COLLECTIVE_API : TRANSFER_API;
  start(communicator, kind, &event, &task->call);
  stop(communicator, kind, task->call);
#else
  (void)communicator, (void)first, (void)group, task->call = NULL;
#endif
}

static void start_task(struct communicator *communicator, struct task *task, void *group) {
  event_t event = {.type = task->collective ? ncclProfileColl : ncclProfileP2p,
                   .parentObj = PROFILER_VERSION == 4 ? group : task->call};
  if (task->collective) {
    event.event.coll.func = task->function;
    event.event.coll.count = 64;
    event.event.coll.datatype = "ncclFloat32";
    event.event.coll.nChannels = CHANNELS;
    event.event.coll.algo = "RING";
    event.event.coll.proto = "SIMPLE";
  } else {
    event.event.p2p.func = task->function;
    event.event.p2p.count = 64;
    event.event.p2p.datatype = "ncclFloat32";
    event.event.p2p.nChannels = CHANNELS;
    event.event.p2p.peer = 1 - communicator->rank;
  }
#if PROFILER_VERSION >= 5
  if (task->collective)
    event.event.coll.parentGroup = group;
  else
    event.event.p2p.parentGroup = group;
#endif
  start(communicator, task->collective ? COLLECTIVE : TRANSFER, &event, &task->event);
}

static void append_blocks(struct communicator *communicator, void *task) {
  for (int channel = 0; channel < CHANNELS; channel++) {
    while (communicator->appended - __atomic_load_n(&communicator->ended, __ATOMIC_ACQUIRE) == QUEUE)
      let_others_run();
    communicator->blocks[communicator->appended % QUEUE] = (struct block){task, channel, NULL};
    __atomic_add_fetch(&communicator->appended, 1, __ATOMIC_RELEASE);
  }
}

/* Launches a group with a plan. The events of its tasks begin before the proxies receive their work, and end after. */
static void launch_group(struct communicator *communicator) {
  struct task tasks[MOST_TASKS];
  int count = 1 + (int)(next_random(&communicator->random) % MOST_TASKS);
  void *groupCall = NULL, *group;
  event_t event = {.type = ncclProfileGroup};
  for (int i = 0; i < count; i++) {
    size_t function = next_random(&communicator->random) % FUNCTIONS;
    __atomic_add_fetch(&drawn[function], 1, __ATOMIC_RELAXED);
    tasks[i] = (struct task){.function = functions[function].name, .collective = functions[function].collective};
    call(communicator, &tasks[i], i == 0, &groupCall);
  }
  start(communicator, GROUP, &event, &group);
  for (int i = 0; i < count; i++)
    if (mask & ((tasks[i].collective ? ncclProfileColl : ncclProfileP2p) | BELOW))
      start_task(communicator, &tasks[i], group);
  if (mask & ncclProfileKernelCh)
    for (int i = 0; i < count; i++)
      append_blocks(communicator, tasks[i].event);
  for (int i = 0; i < count; i++)
    stop(communicator, tasks[i].collective ? COLLECTIVE : TRANSFER, tasks[i].event);
  stop(communicator, GROUP, group);
  stop(communicator, GROUP_API, groupCall);
}

static void begin_block(struct communicator *communicator, struct block *block) {
  event_t event = {.type = ncclProfileKernelCh, .parentObj = block->task};
  event.event.kernelCh.channelId = (uint8_t)block->channel;
  start(communicator, BLOCK, &event, &block->event);
}

static void end_block(struct communicator *communicator, struct block *block) {
  ncclProfilerEventStateArgs_v4_t arguments = {.kernelCh.pTimer = 1};
  if (block->event)
    SUCCEEDS(plugin->recordEventState(block->event, ncclProfilerKernelChStop, &arguments));
  stop(communicator, BLOCK, block->event);
}

static int is_over(struct communicator *communicator) {
  return __atomic_load_n(&communicator->closing, __ATOMIC_ACQUIRE) &&
         communicator->begun == __atomic_load_n(&communicator->appended, __ATOMIC_ACQUIRE) &&
         (communicator->aborted || communicator->ended == communicator->begun);
}

/* Progress thread: begins and ends blocks of kernels. After an abort, blocks that have begun do not end. */
static void *progress(void *argument) {
  struct communicator *communicator = argument;
  uint64_t random = communicator->random ^ 0x9e3779b9;
  while (!is_over(communicator)) {
    if (communicator->begun < __atomic_load_n(&communicator->appended, __ATOMIC_ACQUIRE))
      begin_block(communicator, &communicator->blocks[communicator->begun++ % QUEUE]);
    long underWay = communicator->begun - communicator->ended;
    if (communicator->aborted ? underWay > QUEUE / 2 : underWay && next_random(&random) % 2) {
      end_block(communicator, &communicator->blocks[communicator->ended % QUEUE]);
      __atomic_add_fetch(&communicator->ended, 1, __ATOMIC_RELEASE);
    }
    sched_yield();
  }
  return NULL;
}

static void begin(struct communicator *communicator, int rank, uint64_t seed, int aborted) {
  *communicator = (struct communicator){.rank = rank, .random = seed + (uint64_t)rank, .aborted = aborted};
#if PROFILER_VERSION >= 5
  SUCCEEDS(plugin->init(&communicator->context, 0x77, &mask, "", 1, RANKS, rank, logger));
#else
  SUCCEEDS(plugin->init(&communicator->context, &mask, "", 0x77, 1, RANKS, rank, logger));
#endif
  REQUIRE(communicator->context, "no profiler");
  REQUIRE(!(mask & (ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin | ncclProfileKernelLaunch)),
          "events are wanted that are not told here: %x", (unsigned)mask);
  REQUIRE(pthread_create(&communicator->progress, NULL, progress, communicator) == 0, "no thread");
}

static void *run(void *argument) {
  struct communicator *communicator = argument;
  for (long i = 0; i < operations; i++) {
    if (i % (operations / PAUSES) == 0)
      usleep(OPERATION_PAUSE_MICROSECONDS);
    launch_group(communicator);
  }
  __atomic_store_n(&communicator->closing, 1, __ATOMIC_RELEASE);
  pthread_join(communicator->progress, NULL);
  SUCCEEDS(plugin->finalize(communicator->context));
  return NULL;
}

/* late: a communicator that has ended. NCCL reports its unfinished blocks only now. */
static void run_all(const char *name, uint64_t seed, const struct communicator *late) {
  static struct communicator communicators[RANKS];
  pthread_t threads[RANKS];
  for (int rank = 0; rank < RANKS; rank++)
    begin(&communicators[rank], rank, seed, 0);
  for (long i = late ? late->ended : 0; late && i < late->begun; i++) {
    struct block block = late->blocks[i % QUEUE];
    struct communicator nobody = {0};
    end_block(&nobody, &block);
  }
  for (int rank = 0; rank < RANKS; rank++)
    pthread_create(&threads[rank], NULL, run, &communicators[rank]);
  for (int rank = 0; rank < RANKS; rank++) {
    char who[16];
    pthread_join(threads[rank], NULL);
    snprintf(who, sizeof who, "%s %d", name, rank);
    print_tallies(who, communicators[rank].tallies);
  }
}

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY OPERATIONS SEED");
  void *library = open_plugin(arguments[1]), *ctx = NULL;
  const net_t *net = symbol(library, TABLE_NAME);
  uint64_t seed = strtoull(arguments[3], NULL, 0);
  static struct communicator aborted;
  plugin = symbol(library, PROFILER_NAME);
  operations = atol(arguments[2]);
  SUCCEEDS(net_init(net, &ctx));
  setenv("MILLRACE_PROFILER", "1", 1);
  run_all("plain", seed, NULL);
  setenv("MILLRACE_PROFILER", "kernels", 1);
  begin(&aborted, 0, seed, 1);
  run(&aborted);
  REQUIRE(aborted.begun > aborted.ended, "nothing was under way");
  print_tallies("aborted", aborted.tallies);
  run_all("kernels", seed, &aborted);
  SUCCEEDS(net->finalize(ctx));
  for (size_t i = 0; i < FUNCTIONS; i++)
    REQUIRE(drawn[i], "no %s", functions[i].name);
  printf("OK " PROFILER_NAME "\n");
  return 0;
}
