/*
 * GIN in C. It does the work that this plugin does in Java for NCCL's device API, in a plain way, as a comparison
 * (gin.sh with GIN_C=1).
 *
 * This is a net plugin for NCCL 2.28 (GIN's table v11). NCCL leaves contexts and their queues to the plugin, and one
 * thread of the process polls them. The bytes of a put are copied from the device to memory that the ranks share, and
 * from there to the device. They move in pieces, with one synchronous copy in each direction. Signals, counters, queues
 * and consumer indices are in mapped host memory. Producer indices and contexts are on the device. All ranks run on one
 * host. As a net the plugin carries nothing, so it has no collectives. Descriptors that kernels posted and did not
 * flush are dropped with the context.
 */
#define _GNU_SOURCE
#include "nccl/gin_v11.h"

#include "nccl/gin.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* NCCL's functions have more parameters than this file needs. */
enum { MAX_RANKS = 8, MAX_GROUPS = 32, MAX_WINDOWS = 1024, QUEUE_SIZE = 512, WORDS = 8, PIECES = 4, PIECE_BYTES = 256 << 10, PATIENCE_SECONDS = 60 };
#define EXPORT __attribute__((visibility("default")))
#define TELL(level, ...) (logger ? logger(level, NCCL_NET, __FILE__, __LINE__, "GIN: " __VA_ARGS__) : (void)0)
#define WARN(...) TELL(NCCL_LOG_WARN, __VA_ARGS__)
#define CUDA(call) succeeded(call, #call)
/*
 * Accesses to memory that other threads, processes and kernels see. Accesses before a STORE or an ADD become visible
 * before it. Accesses after a LOAD happen after it.
 */
#define LOAD(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#define ADD(place, value) __atomic_fetch_add(place, value, __ATOMIC_RELEASE)

/* A piece of a put, or a signal alone. The field add is not 0 only in the last piece of a put with a signal. */
typedef struct {
  uint64_t window, offset, bytes, signal, add;
} piece_t;

/* Ring from one rank to one rank: the sender advances posted, the receiver advances taken. */
typedef struct {
  _Alignas(128) uint32_t posted;
  _Alignas(128) uint32_t taken;
  _Alignas(128) piece_t pieces[PIECES];
  _Alignas(4096) char bytes[PIECES][PIECE_BYTES];
} ring_t;

typedef struct {
  uint32_t met[MAX_RANKS];
  _Alignas(4096) ring_t rings[]; /* index: from * ranks + to */
} segment_t;

/* State of the queue to one peer: the current descriptor if busy, and the number of its bytes that were sent. */
typedef struct {
  uint32_t done;
  bool busy;
  uint64_t words[WORDS], sent;
  time_t deadline;
} queue_t;

typedef struct {
  int rank, ranks, number, windows;
  uint64_t signals, counters, served;
  uint32_t meetings;
  bool failed;
  segment_t *segment;
  size_t segmentBytes;
  cudaStream_t stream;
  struct {
    char *base;
    uint64_t bytes;
  } window[MAX_WINDOWS];           /* indexed from 1, because kernels use 0 for no window */
  ncclGinProxyGpuCtx_v1_t context; /* pinned memory has one address for host and device */
  void *deviceContext;
  ncclNetDeviceHandle_t handle;
  queue_t queues[MAX_RANKS];
} group_t;

static ncclDebugLogger_t logger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the start and the end of the thread, and the list of groups */
static pthread_t thread;
static group_t *groups[MAX_GROUPS];
static int connections, groupCount, device;
static bool running;

static time_t deadline(void) { return time(NULL) + PATIENCE_SECONDS; }

static bool succeeded(cudaError_t error, const char *call) {
  if (error != cudaSuccess)
    WARN("%s: %s", call, cudaGetErrorString(error));
  return error == cudaSuccess;
}

/* Copies on a separate stream. The default stream would wait for kernels that wait for this copy. */
static bool copy(group_t *group, void *to, const void *from, size_t bytes) {
  return CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, group->stream)) && CUDA(cudaStreamSynchronize(group->stream));
}

static ring_t *ring(group_t *group, int from, int to) { return &group->segment->rings[from * group->ranks + to]; }

static char *address(group_t *group, uint64_t window, uint64_t offset, uint64_t bytes) {
  uint64_t end = window < MAX_WINDOWS ? LOAD(&group->window[window].bytes) : 0;
  return offset <= end && bytes <= end - offset ? group->window[window].base + offset : NULL;
}

/* Takes a piece from a peer, if one has arrived. Returns false if the group is broken. */
static bool take(group_t *group, int peer) {
  ring_t *from = ring(group, peer, group->rank);
  if (LOAD(&from->posted) == from->taken) /* pairs with put's STORE: the piece is complete */
    return true;
  piece_t piece = from->pieces[from->taken % PIECES];
  if (piece.bytes) {
    char *to = address(group, piece.window, piece.offset, piece.bytes);
    if (!to || !copy(group, to, from->bytes[from->taken % PIECES], piece.bytes))
      return false;
  }
  if (piece.add && piece.signal >= group->signals)
    return false;
  if (piece.add)
    ADD(&group->context.signals[piece.signal], piece.add); /* pairs with waitSignal: the data of earlier puts is in the window */
  STORE(&from->taken, from->taken + 1);                    /* pairs with put's LOAD: the place is free */
  return true;
}

/* Reads the next descriptor of a queue, if a kernel has begun one. Waits until it is complete. */
static bool fetch(group_t *group, int peer) {
  queue_t *queue = &group->queues[peer];
  uint64_t *words = ((ncclGinProxyGfd_v1_t *)group->context.queues)[peer * QUEUE_SIZE + queue->done % QUEUE_SIZE].qword;
  if (!(LOAD(words) & MILLRACE_GIN_FLAG))
    return false;
  time_t end = deadline();
  for (int i = 0; i < WORDS; i++) /* kernels write the words in any order, each with its flag */
    while (!((queue->words[i] = LOAD(&words[i])) & MILLRACE_GIN_FLAG))
      if (time(NULL) > end) {
        STORE(&group->failed, true);
        return false;
      }
  memset(words, 0, WORDS * sizeof *words); /* before cis moves, because kernels may then write here again */
  queue->sent = 0;
  return queue->busy = true;
}

static uint64_t bits(uint64_t word, int shift, int count) { return (word >> shift) & ((1ull << count) - 1); }

/*
 * Sends a piece of the current descriptor or, if the queue has none, of the next descriptor. Returns false if the group
 * is broken.
 */
static bool put(group_t *group, int peer) {
  queue_t *queue = &group->queues[peer];
  if (!queue->busy && !fetch(group, peer))
    return !group->failed;
  ring_t *to = ring(group, group->rank, peer);
  if (to->posted - LOAD(&to->taken) == PIECES) { /* retried in a later pass: the peer may wait for this rank */
    queue->deadline = queue->deadline ? queue->deadline : deadline();
    return time(NULL) <= queue->deadline;
  }
  queue->deadline = 0;
  const uint64_t *words = queue->words;
  uint64_t op = bits(words[ncclGinProxyGfdHeader], MILLRACE_GIN_HEADER_OP_SHIFT, MILLRACE_GIN_HEADER_OP_BITS), completion = words[ncclGinProxyGfdCompletion];
  uint64_t left = (words[ncclGinProxyGfdHeader] >> MILLRACE_GIN_HEADER_SIZE_SHIFT) - queue->sent;
  piece_t piece = {words[ncclGinProxyGfdDstHandle] >> MILLRACE_GIN_ADDRESS_SHIFT, (words[ncclGinProxyGfdDstOff] >> MILLRACE_GIN_ADDRESS_SHIFT) + queue->sent,
                   left < PIECE_BYTES ? left : PIECE_BYTES, bits(completion, MILLRACE_GIN_V28_SIGNAL_SHIFT, MILLRACE_GIN_V28_SIGNAL_BITS), 0};
  bool last = piece.bytes == left;
  char *bytes = to->bytes[to->posted % PIECES];
  if (piece.bytes && op & ncclGinProxyOpWithInline) {
    uint64_t value = bits(words[ncclGinProxyGfdInlineLow], MILLRACE_GIN_INLINE_SHIFT, MILLRACE_GIN_INLINE_LOW_BITS) |
                     bits(words[ncclGinProxyGfdInlineHigh], MILLRACE_GIN_INLINE_SHIFT, MILLRACE_GIN_INLINE_HIGH_BITS) << MILLRACE_GIN_INLINE_LOW_BITS;
    if (piece.bytes > sizeof value)
      return false;
    memcpy(bytes, &value, piece.bytes);
  } else if (piece.bytes) {
    char *from = address(group, words[ncclGinProxyGfdSrcHandle] >> MILLRACE_GIN_ADDRESS_SHIFT,
                         (words[ncclGinProxyGfdSrcOff] >> MILLRACE_GIN_ADDRESS_SHIFT) + queue->sent, piece.bytes);
    if (!from || !copy(group, bytes, from, piece.bytes))
      return false;
  }
  if (last && op & ncclGinProxyOpWithSignalInc)
    piece.add = 1;
  else if (last && op & ncclGinProxyOpWithSignalAdd)
    piece.add = bits(completion, MILLRACE_GIN_V28_VALUE_LOW_SHIFT, MILLRACE_GIN_VALUE_LOW_BITS) |
                bits(words[ncclGinProxyGfdSignalVal], MILLRACE_GIN_VALUE_HIGH_SHIFT, MILLRACE_GIN_VALUE_HIGH_BITS) << MILLRACE_GIN_VALUE_LOW_BITS;
  if (piece.bytes || piece.add) {
    to->pieces[to->posted % PIECES] = piece;
    STORE(&to->posted, to->posted + 1); /* pairs with take's LOAD */
  }
  queue->sent += piece.bytes;
  if (!last)
    return true;
  uint64_t counter = bits(completion, MILLRACE_GIN_V28_COUNTER_SHIFT, MILLRACE_GIN_V28_COUNTER_BITS);
  if (op & ncclGinProxyOpWithCounter && counter >= group->counters)
    return false;
  if (op & ncclGinProxyOpWithCounter)
    ADD(&group->context.counters[counter], 1); /* the source was read; counters promise no more */
  queue->busy = false;
  group->served++;
  STORE(&group->context.cis[peer], ++queue->done); /* pairs with flush, and with kernels that wait for room: the place is empty */
  return true;
}

static void *serve(void *unused) {
  CUDA(cudaSetDevice(device));
  while (LOAD(&running))
    for (int i = 0; i < groupCount; i++)
      for (int peer = 0; !groups[i]->failed && peer < groups[i]->ranks; peer++)
        if (!take(groups[i], peer) || !put(groups[i], peer)) {
          WARN("rank %d is no longer served: descriptor %u for rank %d, or what came from there", groups[i]->rank, groups[i]->queues[peer].done, peer);
          STORE(&groups[i]->failed, true);
        }
  return unused;
}

/*
 * Adds or removes a group. The thread is stopped during the change. A pass is short, so this function waits for its
 * end.
 */
static bool change(group_t *added, group_t *removed) {
  pthread_mutex_lock(&lock);
  if (running) {
    STORE(&running, false);
    pthread_join(thread, NULL);
  }
  bool ok = !added || (groupCount < MAX_GROUPS && CUDA(cudaGetDevice(&device)));
  if (ok && added)
    groups[groupCount++] = added;
  for (int i = 0; i < groupCount; i++)
    if (groups[i] == removed)
      groups[i--] = groups[--groupCount];
  running = groupCount > 0;
  if (running && pthread_create(&thread, NULL, serve, NULL) != 0)
    running = ok = false;
  pthread_mutex_unlock(&lock);
  return ok;
}

/* Returns when all ranks have called this function. */
static bool meet(group_t *group) {
  time_t end = deadline();
  STORE(&group->segment->met[group->rank], ++group->meetings);
  for (int peer = 0; peer < group->ranks; peer++)
    for (; (int32_t)(LOAD(&group->segment->met[peer]) - group->meetings) < 0; sched_yield())
      if (time(NULL) > end) {
        WARN("rank %d waited %d s for rank %d", group->rank, PATIENCE_SECONDS, peer);
        return false;
      }
  return true;
}

/*
 * Maps memory that all ranks share. Rank 0 creates the file and allocates its full size. The other ranks wait until the
 * file exists and has this size.
 */
static segment_t *map(const char *name, int rank, size_t bytes) {
  int file = shm_open(name, rank ? O_RDWR : O_CREAT | O_EXCL | O_RDWR, 0600);
  for (time_t end = deadline(); rank && (file < 0 || lseek(file, 0, SEEK_END) < (off_t)bytes) && time(NULL) <= end; usleep(1000))
    if (file < 0)
      file = shm_open(name, O_RDWR, 0600);
  bool ok = file >= 0 && (rank ? lseek(file, 0, SEEK_END) >= (off_t)bytes : posix_fallocate(file, 0, (off_t)bytes) == 0);
  void *segment = ok ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (file >= 0)
    close(file);
  return segment == MAP_FAILED ? NULL : segment;
}

static ncclResult_t init(void **ctx, uint64_t commId, ncclDebugLogger_t log) {
  STORE(&logger, log);
  *ctx = &logger; /* the plugin keeps no state */
  return ncclSuccess;
}

static ncclResult_t devices(int *count) {
  *count = 1;
  return ncclSuccess;
}

static ncclResult_t getNetProperties(int dev, ncclNetProperties_v11_t *to) {
  *to = (ncclNetProperties_v11_t){.name = "gin_c", .ptrSupport = NCCL_PTR_HOST, .speed = 10000, .maxComms = 1 << 16, .maxRecvs = 1, .vProps = {1, {dev}},
                                  .maxP2pBytes = MAX_NET_SIZE, .maxCollBytes = MAX_NET_SIZE, .maxMultiRequestSize = 1};
  return ncclSuccess;
}

static ncclResult_t getProperties(int dev, ncclNetProperties_v11_t *to) {
  getNetProperties(dev, to);
  to->netDeviceType = NCCL_NET_DEVICE_GIN_GDAKI; /* not a proxy's type, so that NCCL leaves contexts to the plugin */
  return ncclSuccess;
}

/* Chooses a name for shared memory. The ranks use the name of rank 0. */
static ncclResult_t ginListen(void *ctx, int dev, void *handle, void **listenComm) {
  static int count;
  snprintf(handle, NCCL_NET_HANDLE_MAXSIZE, "/gin_c-%d-%ld-%d", (int)getpid(), (long)time(NULL), ADD(&count, 1));
  *listenComm = &count;
  return ncclSuccess;
}

static ncclResult_t destroyContext(void *ginCtx) {
  group_t *group = ginCtx;
  TELL(NCCL_LOG_INFO, "rank %d, context %d: descriptors served by C: %lu", group->rank, group->number, group->served);
  return change(NULL, group) ? ncclSuccess : ncclSystemError;
}

static ncclResult_t closeColl(void *collComm) {
  group_t *group = collComm;
  change(NULL, group); /* the creation of the context has failed */
  void *pinned[] = {group->context.queues, group->context.cis, group->context.counters, group->context.signals};
  for (int i = 0; i < 4; i++)
    CUDA(cudaFreeHost(pinned[i]));
  CUDA(cudaFree(group->context.pis));
  CUDA(cudaFree(group->deviceContext));
  if (group->stream)
    CUDA(cudaStreamDestroy(group->stream));
  if (group->segment) {
    cudaHostUnregister(group->segment);
    munmap(group->segment, group->segmentBytes);
  }
  free(group);
  return ncclSuccess;
}

static ncclResult_t ginConnect(void *ctx, void *handles[], int ranks, int rank, void *listenComm, void **collComm) {
  group_t *group = calloc(1, sizeof *group);
  if (!group || ranks > MAX_RANKS) {
    WARN("%d ranks, and this serves %d at most", ranks, MAX_RANKS);
    return ncclInvalidUsage;
  }
  group->rank = rank;
  group->ranks = ranks;
  group->number = ADD(&connections, 1);
  group->segmentBytes = sizeof(segment_t) + ranks * ranks * sizeof(ring_t);
  group->segment = map(handles[0], rank, group->segmentBytes);
  if (!group->segment)
    WARN("no %zu bytes of shared memory %s: are all ranks of one host, is /dev/shm large enough?", group->segmentBytes, (char *)handles[0]);
  bool ok = group->segment && CUDA(cudaHostRegister(group->segment, group->segmentBytes, cudaHostRegisterPortable)) &&
            CUDA(cudaStreamCreateWithFlags(&group->stream, cudaStreamNonBlocking)) && meet(group);
  if (rank == 0)
    shm_unlink(handles[0]);
  if (!ok)
    closeColl(group);
  *collComm = ok ? group : NULL;
  return ok ? ncclSuccess : ncclSystemError;
}

static bool share(void *place, size_t bytes) {
  bool ok = CUDA(cudaHostAlloc(place, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  if (ok)
    memset(*(void **)place, 0, bytes);
  return ok;
}

static ncclResult_t createContext(void *collComm, int nSignals, int nCounters, void **ginCtx, ncclNetDeviceHandle_t **devHandle) {
  group_t *group = collComm;
  ncclGinProxyGpuCtx_v1_t *context = &group->context;
  static const uint32_t none[MAX_RANKS];
  group->signals = nSignals;
  group->counters = nCounters;
  context->nranks = group->ranks;
  context->queueSize = QUEUE_SIZE;
  if (!share(&context->queues, group->ranks * QUEUE_SIZE * sizeof(ncclGinProxyGfd_v1_t)) || !share(&context->cis, sizeof none) ||
      !share(&context->counters, (nCounters + 1) * sizeof(uint64_t)) || !share(&context->signals, (nSignals + 1) * sizeof(uint64_t)) ||
      !CUDA(cudaMalloc((void **)&context->pis, sizeof none)) || !copy(group, context->pis, none, sizeof none) ||
      !CUDA(cudaMalloc(&group->deviceContext, sizeof *context)) || !copy(group, group->deviceContext, context, sizeof *context) || !change(group, NULL))
    return ncclSystemError;
  group->handle = (ncclNetDeviceHandle_t){NCCL_NET_DEVICE_GIN_PROXY, NCCL_GIN_PROXY_VERSION, group->deviceContext, sizeof *context, 0};
  *ginCtx = group;
  *devHandle = &group->handle;
  return ncclSuccess;
}

/*
 * Registers a window. All ranks register their windows in the same order, and no rank puts into a window before all
 * ranks have it. Window numbers are not reused.
 */
static ncclResult_t regMrSym(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle, void **ginHandle) {
  group_t *group = collComm;
  int window = ++group->windows;
  if (window >= MAX_WINDOWS)
    return ncclInvalidUsage;
  group->window[window].base = data;
  STORE(&group->window[window].bytes, size); /* pairs with address's LOAD */
  *mhandle = &group->window[window];
  *ginHandle = (void *)(intptr_t)window;
  return meet(group) ? ncclSuccess : ncclSystemError;
}

static ncclResult_t deregMrSym(void *collComm, void *mhandle) { return ncclSuccess; }

static ncclResult_t queryLastError(void *ginCtx, bool *hasError) {
  *hasError = ginCtx && LOAD(&((group_t *)ginCtx)->failed);
  return ncclSuccess;
}

static ncclResult_t nothing(void *object) { return ncclSuccess; }

/* NCCL calls the other functions of the table only for its own proxy. */
EXPORT const ncclGin_v11_t ncclGinPlugin_v11 = {
    .name = "gin_c", .init = init, .devices = devices, .getProperties = getProperties, .listen = ginListen, .connect = ginConnect,
    .createContext = createContext, .regMrSym = regMrSym, .deregMrSym = deregMrSym, .destroyContext = destroyContext, .closeColl = closeColl,
    .closeListen = nothing, .queryLastError = queryLastError, .finalize = nothing};

static ncclResult_t netInit(void **ctx, uint64_t commId, ncclNetCommConfig_v11_t *config, ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  return init(ctx, commId, log);
}

/* The first function that NCCL calls for a connection. */
static ncclResult_t netListen(void *ctx, int dev, void *handle, void **listenComm) {
  WARN("this plugin serves kernels alone, and no collectives");
  return ncclInvalidUsage;
}

/* NCCL 2.28 searches for GIN only in net plugins. */
EXPORT const ncclNet_v11_t ncclNetPlugin_v11 = {
    .name = "gin_c", .init = netInit, .devices = devices, .getProperties = getNetProperties, .listen = netListen, .finalize = nothing};
