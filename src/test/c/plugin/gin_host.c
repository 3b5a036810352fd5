/*
 * Runs ranks over every operation of one version of GIN's table, one thread per rank. Usage: LIBRARY RANKS PUTS SEED
 * [WINDOWS]. The program posts the descriptors of NCCL's kernels into the memory that createContext returned. WINDOWS
 * has one letter for the source and one for the target:
 * - h: host memory
 * - d: memory of a device (requires the stub of CUDA, as the following letters do)
 * - s: memory of a device in several physical segments
 * - n: host memory that devices of other processes can map
 * - p: such host memory that no processor can access
 */
#define _GNU_SOURCE
#include "device_slots.h"

#include "nccl/gin.h"
#include "nccl/gin_v12.h"
#include "nccl/gin_v13.h"
#include "nccl/gin_v14.h"

#include <pthread.h>
#include <time.h>

#define MAX_RANKS 8
#define MAX_CONTEXTS 2
#define MAX_BYTES 100000
#define MAX_SEGMENTS 5
#define PAGE 4096
#define DEADLINE_SECONDS 60

#if GIN_VERSION == 11
typedef ncclGin_v11_t gin_t;
typedef ncclGinProxyGfd_v1_t gfd_t;
typedef ncclGinProxyGpuCtx_v1_t gpu_context_t;
#define TABLE_NAME "ncclGinPlugin_v11"
#define CONTEXTS 1
#define CONNECT(gin, ...) (gin)->connect(__VA_ARGS__)
#define SIGNAL_SHIFT MILLRACE_GIN_V28_SIGNAL_SHIFT
#define COUNTER_SHIFT MILLRACE_GIN_V28_COUNTER_SHIFT
#define VALUE_SHIFT MILLRACE_GIN_V28_VALUE_LOW_SHIFT
#elif GIN_VERSION == 12
typedef ncclGin_v12_t gin_t;
typedef ncclGinProxyGfd_v1_t gfd_t;
typedef ncclGinProxyGpuCtx_v1_t gpu_context_t;
#define TABLE_NAME "ncclGinPlugin_v12"
#define CONTEXTS 2
#define CONNECT(gin, ctx, handles, ranks, rank, listenComm, coll) \
  (gin)->connect(ctx, handles, ranks, rank, 1, 64, listenComm, coll)
#else
#if GIN_VERSION == 13
typedef ncclGin_v13_t gin_t;
#define TABLE_NAME "ncclGinPlugin_v13"
#elif GIN_VERSION == 14
typedef ncclGin_v14_t gin_t;
#define TABLE_NAME "ncclGinPlugin_v14"
#else
typedef ncclGin_v15_t gin_t;
#define TABLE_NAME "ncclGinPlugin_v15"
#define CONNECT(gin, ...) (gin)->connect(__VA_ARGS__, &never)
#endif
typedef ncclGinProxyGfd_v2_t gfd_t;
#if BACKEND == 1 /* kernels of NCCL 2.30.3 */
typedef ncclGinProxyGpuCtx_v1_t gpu_context_t;
#define GFD_VERSION MILLRACE_GIN_GFD_VERSION_V23003
#else
typedef ncclGinProxyGpuCtx_v2_t gpu_context_t;
#define GFD_VERSION NCCL_GIN_PROXY_GFD_VERSION
#endif
#define CONTEXTS 2
#ifndef CONNECT
#define CONNECT(gin, ...) (gin)->connect(__VA_ARGS__)
#endif
#endif
#ifndef SIGNAL_SHIFT
#define SIGNAL_SHIFT MILLRACE_GIN_SIGNAL_SHIFT
#define COUNTER_SHIFT MILLRACE_GIN_COUNTER_SHIFT
#define VALUE_SHIFT MILLRACE_GIN_VALUE_LOW_SHIFT
#endif

static int ranks;
#if GIN_VERSION == 15
/* Abort flag for connect. It is never set. */
static volatile uint32_t never;
#endif
static long messages;
static uint64_t seed;
static const gin_t *gin;
static const char *kinds = "hh";
static char handles[MAX_RANKS][NCCL_NET_HANDLE_MAXSIZE];
static pthread_barrier_t barrier;

struct window {
  char *address;
  void *memory;
  uint64_t handle;
};

struct rank {
  int rank;
  void *group, *ginCtx;
  struct window window[2];
  gpu_context_t *contexts;
  unsigned char *source, *target;
};

static int on_stub(void) { return strcmp(kinds, "hh") != 0; }

/* Allocates zeroed memory of a kind. Stores the address for registration in the window. */
static unsigned char *allocate_window(char kind, size_t bytes, struct window *window) {
  size_t pages = (bytes + PAGE - 1) / PAGE, segments[MAX_SEGMENTS];
  char *memory;
  switch (kind) {
  case 'h':
    return (unsigned char *)(window->address = calloc(1, bytes));
  case 'd':
  case 'p':
    window->address = allocate_on_device(bytes, &memory);
    return (unsigned char *)memory;
  case 'n':
    segments[0] = pages * PAGE;
    window->address = allocate_segments(1, segments, 1, &memory);
    return (unsigned char *)memory;
  case 's':
    for (int i = 0; i < MAX_SEGMENTS; i++)
      segments[i] = (pages * (i + 1) / MAX_SEGMENTS - pages * i / MAX_SEGMENTS) * PAGE;
    window->address = allocate_segments(MAX_SEGMENTS, segments, 0, &memory);
    return (unsigned char *)memory;
  default:
    REQUIRE(0, "no window is of kind %c", kind);
  }
}

static int type_of(char kind) { return kind == 'd' || kind == 's' ? NCCL_PTR_CUDA : NCCL_PTR_HOST; }

static unsigned char pattern(int from, int to, long put, size_t at) {
  return (unsigned char)(from * 31 + to * 7 + put * 13 + (long)at * 3 + (long)(at >> 9));
}

static size_t put_bytes(uint64_t *random) {
  switch (next_random(random) % 4) {
  case 0:
    return 0;
  case 1:
    return 1 + next_random(random) % 8;
  default:
    return next_random(random) % MAX_BYTES;
  }
}

static void wait_until_deadline(const char *what, int rank, const time_t *end) {
  REQUIRE(time(NULL) < *end, "rank %d waits for %s (seed %lu)", rank, what, seed);
  let_others_run();
}

/* Posts as NCCL's kernels do: the words in any order, each with its flag. */
static uint32_t post(struct rank *rank, int context, int peer, const uint64_t *words) {
  gpu_context_t *to = &rank->contexts[context];
  time_t end = time(NULL) + DEADLINE_SECONDS;
  uint32_t index = __atomic_fetch_add(&to->pis[peer], 1, __ATOMIC_SEQ_CST);
  while (index - __atomic_load_n(&to->cis[peer], __ATOMIC_ACQUIRE) >= to->queueSize)
    wait_until_deadline("room in a queue", rank->rank, &end);
  gfd_t *place = (gfd_t *)to->queues + (size_t)peer * to->queueSize + (index & (to->queueSize - 1));
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  int count = sizeof(gfd_t) / sizeof(uint64_t);
  for (int i = count; i-- > 0;)
    __atomic_store_n(&place->qword[i], words[i] | MILLRACE_GIN_FLAG, __ATOMIC_RELAXED);
  return index;
}

static void begin(uint64_t *words, int op, uint64_t bytes) {
  memset(words, 0, sizeof(gfd_t));
  words[ncclGinProxyGfdHeader] = bytes << MILLRACE_GIN_HEADER_SIZE_SHIFT;
#if GIN_VERSION >= 13
  words[ncclGinProxyGfdHeader] |= GFD_VERSION << MILLRACE_GIN_HEADER_VERSION_SHIFT;
  words[ncclGinProxyGfdHeaderExt] = (uint64_t)op << MILLRACE_GIN_EXT_OP_SHIFT;
#else
  words[ncclGinProxyGfdHeader] |= (uint64_t)op << MILLRACE_GIN_HEADER_OP_SHIFT;
#endif
}

/* Posts a rank's numbered put to a peer. A short put carries its value, a longer one reads the source window. */
static void put(struct rank *rank, int context, int peer, long number, size_t bytes, size_t offset, int counter) {
  uint64_t words[16], inlined = 0;
  int value = bytes > 0 && bytes <= 8;
  for (size_t i = 0; value && i < bytes; i++)
    inlined |= (uint64_t)pattern(rank->rank, peer, number, i) << 8 * i;
  begin(words,
        ncclGinProxyOpPut | ncclGinProxyOpWithSignalAdd |
            (value ? ncclGinProxyOpWithInline : ncclGinProxyOpWithCounter),
        bytes);
  if (value) {
    words[ncclGinProxyGfdInlineLow] = (inlined & ((1ull << 48) - 1)) << MILLRACE_GIN_INLINE_SHIFT;
    words[ncclGinProxyGfdInlineHigh] = inlined >> 48 << MILLRACE_GIN_INLINE_SHIFT;
  } else {
    size_t from = ((size_t)peer * messages + number) * MAX_BYTES;
    for (size_t i = 0; i < bytes; i++)
      rank->source[from + i] = pattern(rank->rank, peer, number, i);
    words[ncclGinProxyGfdSrcOff] = from << MILLRACE_GIN_ADDRESS_SHIFT;
    words[ncclGinProxyGfdSrcHandle] = rank->window[0].handle << MILLRACE_GIN_ADDRESS_SHIFT;
  }
  words[ncclGinProxyGfdDstOff] = offset << MILLRACE_GIN_ADDRESS_SHIFT;
  words[ncclGinProxyGfdDstHandle] = rank->window[1].handle << MILLRACE_GIN_ADDRESS_SHIFT;
  uint64_t add = (1ull << 40) + 1;
  words[ncclGinProxyGfdCompletion] = (uint64_t)counter << COUNTER_SHIFT | (uint64_t)rank->rank << SIGNAL_SHIFT |
                                     (add & 0xffff) << VALUE_SHIFT;
  words[ncclGinProxyGfdSignalVal] = add >> 16 << MILLRACE_GIN_VALUE_HIGH_SHIFT;
  post(rank, context, peer, words);
}

static size_t target_offset(int from, long number) { return ((size_t)from * messages + number) * MAX_BYTES; }

static void check(struct rank *rank) {
  time_t end = time(NULL) + DEADLINE_SECONDS;
  for (int peer = 0; peer < ranks; peer++) {
    uint64_t add = (1ull << 40) + 1, random = seed + (uint64_t)(peer * MAX_RANKS + rank->rank) * 977 + 1, sum = 0;
    while (sum != messages * add) { /* each context has signals of its own */
      sum = 0;
      for (int context = 0; context < CONTEXTS; context++)
        sum += __atomic_load_n(&rank->contexts[context].signals[peer], __ATOMIC_ACQUIRE);
      wait_until_deadline("signals", rank->rank, &end);
    }
    for (long number = 0; number < messages; number++) {
      size_t bytes = put_bytes(&random), at = target_offset(peer, number);
      next_random(&random);
      for (size_t i = 0; i < bytes; i++)
        REQUIRE(rank->target[at + i] == pattern(peer, rank->rank, number, i),
            "rank %d, put %ld of rank %d, byte %zu of %zu (seed %lu)",
                rank->rank, number, peer, i, bytes, seed);
      REQUIRE(rank->target[at + bytes] == 0, "rank %d, put %ld of rank %d: a byte too many (seed %lu)", rank->rank,
          number, peer, seed);
    }
  }
}

/* Waits until every queue is empty, as a kernel's flush does. */
static void flush(struct rank *rank) {
  time_t end = time(NULL) + DEADLINE_SECONDS;
  for (int context = 0; context < CONTEXTS; context++)
    for (int peer = 0; peer < ranks; peer++)
      while (__atomic_load_n(&rank->contexts[context].cis[peer], __ATOMIC_ACQUIRE) != rank->contexts[context].pis[peer])
        wait_until_deadline("a flush", rank->rank, &end);
}

#if GIN_VERSION >= 13
/* Reads the first bytes of every rank's source by a get. */
static void get_from_all(struct rank *rank) {
  for (int peer = 0; peer < ranks; peer++) {
    uint64_t words[16];
    size_t at = (size_t)ranks * messages * MAX_BYTES + (size_t)peer * 64;
    begin(words, ncclGinProxyOpGet, 64);
    words[ncclGinProxyGfdSrcOff] = 0;
    words[ncclGinProxyGfdSrcHandle] = rank->window[0].handle << MILLRACE_GIN_ADDRESS_SHIFT;
    words[ncclGinProxyGfdDstOff] = at << MILLRACE_GIN_ADDRESS_SHIFT;
    words[ncclGinProxyGfdDstHandle] = rank->window[1].handle << MILLRACE_GIN_ADDRESS_SHIFT;
    post(rank, 0, peer, words);
  }
  flush(rank);
}
#endif

#if GIN_VERSION >= 13
#define ADDS 40
#define ADDED 5 /* signals in the target's window */

static size_t signal_offset(int which) {
  return (size_t)ranks * messages * MAX_BYTES + 2048 + (size_t)which * sizeof(uint64_t);
}

#define BOTH_HALVES 0x100000001ull

/* Adds to signals in every rank's window, many at once. The addend has two equal halves, so the signals have too. */
static void add_to_all(struct rank *rank) {
  for (int i = 0; i < ADDS; i++)
    for (int peer = 0; peer < ranks; peer++) {
      uint64_t words[16], add = (i + 1) * BOTH_HALVES;
      begin(words, ncclGinProxyOpVASignal | ncclGinProxyOpWithSignalAdd, 0);
      words[ncclGinProxyGfdVASignalOff] = signal_offset(i % ADDED) << MILLRACE_GIN_ADDRESS_SHIFT;
      words[ncclGinProxyGfdVASignalHandle] = rank->window[1].handle << MILLRACE_GIN_ADDRESS_SHIFT;
      words[ncclGinProxyGfdCompletion] = (add & 0xffff) << VALUE_SHIFT;
      words[ncclGinProxyGfdSignalVal] = add >> 16 << MILLRACE_GIN_VALUE_HIGH_SHIFT;
      post(rank, i % CONTEXTS, peer, words);
    }
  time_t end = time(NULL) + DEADLINE_SECONDS;
  uint64_t missing = ADDS * (ADDS + 1) / 2 * (uint64_t)ranks;
  for (uint64_t sum = 0; sum != missing;) {
    sum = 0;
    for (int which = 0; which < ADDED; which++) {
      uint64_t signal = __atomic_load_n((uint64_t *)(rank->target + signal_offset(which)), __ATOMIC_ACQUIRE);
      REQUIRE(signal % BOTH_HALVES == 0, "rank %d, signal %d in its window is half of a number: 0x%lx", rank->rank, which, signal);
      sum += signal / BOTH_HALVES;
    }
    wait_until_deadline("signals in a window", rank->rank, &end);
  }
  flush(rank);
}

#define NUMBERS 30
#define OF_32_BITS 0x10001u

/*
 * Puts numbers of 8 bytes, of 4 bytes, and three of 4 bytes at once, and values of 8 and 4 bytes. Each kind goes
 * repeatedly to one place at each rank. The halves of the numbers are equal, as in add_to_all.
 */
static void put_numbers(struct rank *rank) {
  size_t all = (size_t)ranks * messages * MAX_BYTES, from = all + 2560, to = all + 3072;
  static const size_t places[] = {0, 8, 16}, sizes[] = {8, 4, 12}, values[] = {32, 40};
  for (int i = 1; i <= NUMBERS; i++) {
    unsigned char *source = rank->source + from + 32 * i;
    uint64_t number = i * BOTH_HALVES;
    uint32_t shorter[3] = {i * OF_32_BITS, i * OF_32_BITS, i * OF_32_BITS};
    memcpy(source, &number, sizeof number);
    memcpy(source + places[1], shorter, sizeof shorter[0]);
    memcpy(source + places[2], shorter, sizeof shorter);
    for (int peer = 0; peer < ranks; peer++)
      for (int which = 0; which < 3; which++) {
        uint64_t words[16];
        begin(words, ncclGinProxyOpPut, sizes[which]);
        words[ncclGinProxyGfdSrcOff] = (from + 32 * i + places[which]) << MILLRACE_GIN_ADDRESS_SHIFT;
        words[ncclGinProxyGfdSrcHandle] = rank->window[0].handle << MILLRACE_GIN_ADDRESS_SHIFT;
        words[ncclGinProxyGfdDstOff] = (to + (size_t)rank->rank * 64 + places[which]) << MILLRACE_GIN_ADDRESS_SHIFT;
        words[ncclGinProxyGfdDstHandle] = rank->window[1].handle << MILLRACE_GIN_ADDRESS_SHIFT;
        post(rank, 0, peer, words);
      }
    for (int peer = 0; peer < ranks; peer++)
      for (int which = 0; which < 2; which++) {
        uint64_t words[16], value = which == 0 ? number : shorter[0];
        begin(words, ncclGinProxyOpPut | ncclGinProxyOpWithInline, sizes[which]);
        words[ncclGinProxyGfdInlineLow] = (value & ((1ull << 48) - 1)) << MILLRACE_GIN_INLINE_SHIFT;
        words[ncclGinProxyGfdInlineHigh] = value >> 48 << MILLRACE_GIN_INLINE_SHIFT;
        words[ncclGinProxyGfdDstOff] = (to + (size_t)rank->rank * 64 + values[which]) << MILLRACE_GIN_ADDRESS_SHIFT;
        words[ncclGinProxyGfdDstHandle] = rank->window[1].handle << MILLRACE_GIN_ADDRESS_SHIFT;
        post(rank, 0, peer, words);
      }
  }
  time_t end = time(NULL) + DEADLINE_SECONDS;
  for (int there = 0; there != ranks * 7;) {
    there = 0;
    for (int peer = 0; peer < ranks; peer++) {
      unsigned char *place = rank->target + to + (size_t)peer * 64;
      for (int i = 0; i < 2; i++) {
        uint64_t number = __atomic_load_n((uint64_t *)(place + (i == 0 ? places[0] : values[0])), __ATOMIC_ACQUIRE);
        REQUIRE(number % BOTH_HALVES == 0, "rank %d, of rank %d: half of number %d: 0x%lx", rank->rank, peer, i, number);
        there += number == NUMBERS * BOTH_HALVES;
      }
      for (int i = 0; i < 5; i++) {
        size_t at = i == 3 ? places[1] : i == 4 ? values[1] : places[2] + 4 * i;
        uint32_t shorter = __atomic_load_n((uint32_t *)(place + at), __ATOMIC_ACQUIRE);
        REQUIRE(shorter % OF_32_BITS == 0, "rank %d, of rank %d: half of shorter number %d: 0x%x", rank->rank, peer, i, shorter);
        there += shorter == NUMBERS * OF_32_BITS;
      }
    }
    wait_until_deadline("numbers", rank->rank, &end);
  }
  flush(rank);
}
#endif

static void create_context(struct rank *rank) {
  ncclNetDeviceHandle_t *handle = NULL;
#if GIN_VERSION == 11
  SUCCEEDS(gin->createContext(rank->group, 64, 64, &rank->ginCtx, &handle));
#elif GIN_VERSION == 12
  SUCCEEDS(gin->createContext(rank->group, 64, 64, CONTEXTS, &rank->ginCtx, &handle));
#else
#if GIN_VERSION == 13
  ncclGinConfig_v13_t config = {64, 64, CONTEXTS, 64, -1};
#else
  JOIN(ncclGinConfig_v, GIN_VERSION, _t) config = {.nSignals = 64, .nCounters = 64, .nContexts = CONTEXTS,
                                                  .queueDepth = 64, .trafficClass = -1, .backendVersion = BACKEND};
#endif
  SUCCEEDS(gin->createContext(rank->group, &config, &rank->ginCtx, &handle));
#endif
  REQUIRE(handle->netDeviceType == NCCL_NET_DEVICE_GIN_PROXY && !handle->needsProxyProgress, "type %d",
      handle->netDeviceType);
  rank->contexts = handle->handle;
  if (on_stub()) { /* copies, with the addresses that this process can access */
    rank->contexts = malloc(CONTEXTS * sizeof *rank->contexts);
    memcpy(rank->contexts, seen_by_host(handle->handle), CONTEXTS * sizeof *rank->contexts);
    for (int i = 0; i < CONTEXTS; i++)
      rank->contexts[i].pis = seen_by_host(rank->contexts[i].pis);
  }
}

static void no_error(struct rank *rank) {
  bool failed = true;
  SUCCEEDS(gin->queryLastError(NULL, &failed));
  REQUIRE(!failed, "an error without a context");
  SUCCEEDS(gin->queryLastError(rank->ginCtx, &failed));
  REQUIRE(!failed, "rank %d: an error", rank->rank);
}

static void *run(void *argument) {
  struct rank *rank = argument;
  void *ctx, *listenComm, *all[MAX_RANKS];
  int devices = 0;
  SUCCEEDS(gin->init(&ctx, 0x77, logger));
  SUCCEEDS(gin->devices(&devices));
  REQUIRE(devices == 1, "%d devices", devices);
#if GIN_VERSION >= 13
  ncclNetProperties_v12_t properties;
#else
  ncclNetProperties_v11_t properties;
#endif
  SUCCEEDS(gin->getProperties(0, &properties));
  REQUIRE(properties.netDeviceType == NCCL_NET_DEVICE_GIN_GDAKI, "NCCL would make its own contexts");
  SUCCEEDS(gin->listen(ctx, 0, handles[rank->rank], &listenComm));
  pthread_barrier_wait(&barrier);
  for (int peer = 0; peer < ranks; peer++)
    all[peer] = handles[peer];
  SUCCEEDS(CONNECT(gin, GIN_VERSION == 11 ? NULL : ctx, all, ranks, rank->rank, listenComm, &rank->group));
  create_context(rank);
  SUCCEEDS(gin->closeListen(listenComm));
  size_t bytes = (size_t)ranks * messages * MAX_BYTES + 4096;
  rank->source = allocate_window(kinds[0], bytes, &rank->window[0]);
  rank->target = allocate_window(kinds[1], bytes, &rank->window[1]);
  for (int i = 0; i < 2; i++) {
    struct window *window = &rank->window[i];
#if GIN_VERSION >= 13
    REQUIRE(properties.ptrSupport & NCCL_PTR_DMABUF, "NCCL would register no window of several segments");
    if (i == 1) /* RMA of NCCL 2.30.3 calls this function */
      SUCCEEDS(gin->regMrSymDmaBuf(rank->group, window->address, bytes, type_of(kinds[i]), 0, -1, 0, &window->memory,
                                   (void **)&window->handle));
    else
#endif
      SUCCEEDS(gin->regMrSym(rank->group, window->address, bytes, type_of(kinds[i]), 0, &window->memory,
                             (void **)&window->handle));
    REQUIRE(window->memory, "a null handle");
  }

  uint64_t random[MAX_RANKS];
  long counted[CONTEXTS] = {0};
  for (int peer = 0; peer < ranks; peer++)
    random[peer] = seed + (uint64_t)(rank->rank * MAX_RANKS + peer) * 977 + 1;
  for (long number = 0; number < messages; number++)
    for (int peer = 0; peer < ranks; peer++) {
      size_t put_size = put_bytes(&random[peer]);
      int context = (int)(next_random(&random[peer]) % CONTEXTS);
      put(rank, context, peer, number, put_size, target_offset(rank->rank, number), 5);
      counted[context] += put_size == 0 || put_size > 8;
    }
  flush(rank);
  for (int context = 0; context < CONTEXTS; context++)
    REQUIRE(rank->contexts[context].counters[5] == (uint64_t)counted[context], "rank %d: %lu puts counted, not %ld",
        rank->rank,
            rank->contexts[context].counters[5], counted[context]);
  check(rank);
#if GIN_VERSION >= 13
  get_from_all(rank);
  add_to_all(rank);
  put_numbers(rank);
#endif
  no_error(rank);
  pthread_barrier_wait(&barrier);
#if GIN_VERSION >= 13
  for (int peer = 0; peer < ranks; peer++) {
    uint64_t sizes = seed + (uint64_t)(peer * MAX_RANKS + 0) * 977 + 1;
    size_t first = put_bytes(&sizes);
    for (size_t i = 0; i < 64 && first > 8 && i < first; i++)
      REQUIRE(rank->target[(size_t)ranks * messages * MAX_BYTES + (size_t)peer * 64 + i] == pattern(peer, 0, 0, i),
          "rank %d: get from %d", rank->rank, peer);
  }
#endif
  pthread_barrier_wait(&barrier);
  SUCCEEDS(gin->destroyContext(rank->ginCtx));
  SUCCEEDS(gin->deregMrSym(rank->group, rank->window[0].memory)); /* not the other, as some programs do */
  SUCCEEDS(gin->closeColl(rank->group));
  SUCCEEDS(gin->finalize(ctx));
  for (int i = 0; i < 2; i++)
    if (kinds[i] == 'h')
      free(rank->window[i].address);
  return NULL;
}

int main(int count, char **arguments) {
  REQUIRE(count == 5 || count == 6, "usage: LIBRARY RANKS PUTS SEED [WINDOWS]");
  kinds = count == 6 ? arguments[5] : kinds;
  ranks = atoi(arguments[2]);
  messages = atol(arguments[3]);
  seed = strtoull(arguments[4], NULL, 0);
  void *library = open_plugin(arguments[1]);
  gin = symbol(library, TABLE_NAME);
  for (int time = 0; time < 2; time++) { /* a second communicator in the same process */
    struct rank all[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    memset(all, 0, sizeof all);
    pthread_barrier_init(&barrier, NULL, (unsigned)ranks);
    for (int i = 0; i < ranks; i++) {
      all[i].rank = i;
      REQUIRE(pthread_create(&threads[i], NULL, run, &all[i]) == 0, "no thread");
    }
    for (int i = 0; i < ranks; i++)
      pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
  }
  if (on_stub()) {
    print_copies(0);
    printf("%ld events\n", ((long (*)(void))stub_of_cuda("stubRecords"))());
    printf("in all %ld copies begun by %ld calls for many\n", ((long (*)(int))stub_of_cuda("stubBatches"))(1),
           ((long (*)(int))stub_of_cuda("stubBatches"))(0));
    printf("in all %ld copies that a kernel could hold up, %ld in rows\n", ((long (*)(void))stub_of_cuda("stubBehindKernels"))(),
           ((long (*)(int))stub_of_cuda("stubRows"))(1));
  }
  printf("OK " TABLE_NAME "\n");
  return 0;
}
