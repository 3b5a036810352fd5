/* Runs ranks over every operation of a version of the RMA table, one thread per rank. Usage: LIBRARY RANKS ROUNDS. */
#define _GNU_SOURCE
#include "host.h"

#include "nccl/rma_v17.h"

#include <pthread.h>
#include <time.h>

#define MAX_RANKS 8
#define CONTEXTS 2
#define BYTES 70001
#define DEADLINE_SECONDS 60
#define SIGNAL_ADD 2
#define OF_ANOTHER_TABLE ((void *)0x3300022000)

typedef JOIN(ncclRma_v, RMA_VERSION, _t) rma_t;
#define TABLE_NAME "ncclRmaPlugin_v" STRING(RMA_VERSION)
#if RMA_VERSION >= 15
#define FLAGS ncclRmaOptFlagsAggregateRequests,
#else
#define FLAGS
#endif
#if RMA_VERSION >= 17
static volatile uint32_t never;
#define CONNECT(...) rma->connect(__VA_ARGS__, &never)
typedef ncclRmaConfig_v17_t config_t;
#else
#define CONNECT(...) rma->connect(__VA_ARGS__)
typedef ncclRmaConfig_v14_t config_t;
#endif

static int ranks;
static long rounds;
static const rma_t *rma;
static char handles[MAX_RANKS][NCCL_NET_HANDLE_MAXSIZE];
static pthread_barrier_t barrier;

struct window {
  unsigned char *bytes;
  void *handle;
};

static unsigned char pattern(int from, int to, long round, size_t at) {
  return (unsigned char)(from * 31 + to * 7 + round * 13 + (long)at * 3 + (long)(at >> 9));
}

static struct window make_window(void *group, size_t bytes) {
  struct window window = {aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), NULL};
  memset(window.bytes, 0, bytes);
  SUCCEEDS(rma->regMrSym(group, window.bytes, bytes, NCCL_PTR_HOST, 0, &window.handle));
  REQUIRE(window.handle, "a null handle");
  return window;
}

static void await(void *group, void *request) {
  time_t end = time(NULL) + DEADLINE_SECONDS;
  for (int done = 0; !done;) {
    SUCCEEDS(rma->test(group, request, &done));
    REQUIRE(time(NULL) < end, "an operation is not over");
    let_others_run();
  }
}

static void await_signal(const uint64_t *signal, uint64_t value) {
  time_t end = time(NULL) + DEADLINE_SECONDS;
  while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) < value) {
    REQUIRE(time(NULL) < end, "a signal is %lu, not %lu", *signal, value);
    let_others_run();
  }
}

static void *run(void *argument) {
  int rank = *(int *)argument;
  void *ctx, *listenComm, *group, *rmaCtx, *all[MAX_RANKS], *request;
  SUCCEEDS(rma->init(&ctx, 0x77, logger));
  SUCCEEDS(rma->listen(ctx, 0, handles[rank], &listenComm));
  pthread_barrier_wait(&barrier);
  for (int peer = 0; peer < ranks; peer++)
    all[peer] = handles[peer];
  /* NCCL up to 2.30.7 passes a context of the network here. */
  SUCCEEDS(CONNECT(OF_ANOTHER_TABLE, all, ranks, rank, listenComm, &group));
  config_t config = {.nContexts = CONTEXTS, .trafficClass = -1};
#if RMA_VERSION >= 16
  ncclRmaProperties_v16_t properties = {true};
  SUCCEEDS(rma->getRmaProperties(group, &properties));
  REQUIRE(!properties.flushesAllPutsOnAnySignal, "a signal orders its own rank's puts");
#endif
  SUCCEEDS(rma->createContext(group, &config, &rmaCtx));
  SUCCEEDS(rma->closeListen(listenComm));
  struct window source = make_window(group, (size_t)ranks * BYTES);
  struct window target = make_window(group, (size_t)ranks * BYTES);
  struct window signals = make_window(group, 4096);
  for (long round = 0; round < rounds; round++) {
    int context = (int)(round % CONTEXTS);
    for (int peer = 0; peer < ranks; peer++)
      for (size_t i = 0; i < BYTES; i++)
        source.bytes[(size_t)peer * BYTES + i] = pattern(rank, peer, round, i);
    pthread_barrier_wait(&barrier);
    for (int peer = 0; peer < ranks; peer++) {
      SUCCEEDS(rma->iput(rmaCtx, context, (size_t)peer * BYTES, source.handle, BYTES / 2, (size_t)rank * BYTES,
          target.handle, (uint32_t)peer, FLAGS &request));
      REQUIRE(request, "no room");
      SUCCEEDS(rma->iputSignal(rmaCtx, context, (size_t)peer * BYTES + BYTES / 2, source.handle, BYTES - BYTES / 2,
                               (size_t)rank * BYTES + BYTES / 2, target.handle, (uint32_t)peer, (size_t)rank * 8,
                               signals.handle, 5, SIGNAL_ADD, true, FLAGS &request));
      REQUIRE(request, "no room");
      await(group, request);
    }
    for (int peer = 0; peer < ranks; peer++) {
      await_signal((uint64_t *)signals.bytes + peer, 5 * (uint64_t)(round + 1));
      for (size_t i = 0; i < BYTES; i++)
        REQUIRE(target.bytes[(size_t)peer * BYTES + i] == pattern(peer, rank, round, i),
            "round %ld, rank %d: byte %zu of rank %d", round, rank, i, peer);
    }
    pthread_barrier_wait(&barrier);
    /* Gets: each rank reads from the next rank the data that the next rank had put to rank 0. */
    int next = (rank + 1) % ranks;
    SUCCEEDS(rma->iget(rmaCtx, context, 0, source.handle, BYTES, 0, target.handle, (uint32_t)next, FLAGS &request));
    await(group, request);
    SUCCEEDS(rma->iflush(rmaCtx, context, target.handle, (uint32_t)next, &request));
    await(group, request);
    for (size_t i = 0; i < BYTES; i++)
      REQUIRE(target.bytes[i] == pattern(next, 0, round, i), "round %ld, rank %d: byte %zu got from rank %d", round,
          rank, i, next);
    pthread_barrier_wait(&barrier);
  }
  bool failed = true;
  SUCCEEDS(rma->queryLastError(rmaCtx, &failed));
  REQUIRE(!failed, "rank %d: an error", rank);
  SUCCEEDS(rma->destroyContext(rmaCtx));
  SUCCEEDS(rma->deregMrSym(group, source.handle));
  SUCCEEDS(rma->deregMrSym(group, target.handle));
  SUCCEEDS(rma->deregMrSym(group, signals.handle));
  SUCCEEDS(rma->closeColl(group));
  SUCCEEDS(rma->finalize(ctx));
  free(source.bytes);
  free(target.bytes);
  free(signals.bytes);
  return NULL;
}

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY RANKS ROUNDS");
  ranks = atoi(arguments[2]);
  rounds = atol(arguments[3]);
  rma = symbol(open_plugin(arguments[1]), TABLE_NAME);
  int numbers[MAX_RANKS];
  pthread_t threads[MAX_RANKS];
  pthread_barrier_init(&barrier, NULL, (unsigned)ranks);
  for (int i = 0; i < ranks; i++) {
    numbers[i] = i;
    REQUIRE(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0, "no thread");
  }
  for (int i = 0; i < ranks; i++)
    pthread_join(threads[i], NULL);
  printf("OK " TABLE_NAME "\n");
  return 0;
}
