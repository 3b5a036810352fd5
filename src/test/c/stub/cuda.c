/*
 * The part of libcuda that shows whether a device makes progress, and that copies memory of a device. With
 * STUB_CUDA_BUSY the device never makes progress. Device memory has an address at which no processor can access it, and
 * another address for code that imitates kernels. Copies are made late, in pieces, in an order that looks random.
 * STUB_CUDA_NO_EXPORT and STUB_CUDA_NO_IMPORT forbid sharing memory between processes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_READY 600
#define NOT_SUPPORTED 801
#define INVALID 1
#define RANGES 1024
#define COPIES 8192
#define PIECE 1000

static int synchronizations;

/* An allocation or a mapping of one, at an address of the device. */
struct range {
  char *address;
  char *memory;
  size_t bytes;
  int descriptor;
};

struct copy {
  char *to;
  const char *from; /* source address; if NULL, the value is written instead */
  size_t bytes;
  uint64_t value;
};

/* Copies that have begun, oldest first, and the number of completed copies. */
struct stream {
  struct copy copies[COPIES];
  long begun, made;
};

struct event {
  struct stream *stream;
  long number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[RANGES];
/* Addresses that are reserved for mappings, and the location of the memory of all mappings. */
static struct range reserved[RANGES];
static uint64_t seed = 88172645463325252UL;
/* Number of copies within device memory, and of copies from or to host memory. */
static long withinDevice, withHost;
/* Number of copies by a compute engine, which waits for kernels: copies within device memory, and short ones to it. */
static long behindKernels;
/* Number of calls that copy several rows, and number of rows. */
static long rowCalls, rowsInAll;
/* Number of recorded events. */
static long records;
static long batches, batched;
/* Number of queries for which the device makes no progress with its copies. */
static long held;
static struct stream *streams[RANGES];

static struct range *find(struct range *among, const char *address) {
  for (int i = 0; i < RANGES; i++)
    if (among[i].bytes && address >= among[i].address && address < among[i].address + among[i].bytes)
      return &among[i];
  return NULL;
}

static struct range *range_of(const char *address) {
  return find(ranges, address);
}

static struct range *free_of(struct range *among) {
  for (int i = 0; i < RANGES; i++)
    if (!among[i].bytes)
      return &among[i];
  abort();
}

static struct range *free_range(void) {
  return free_of(ranges);
}

static char *processors_memory(char *address) {
  struct range *range = range_of(address);
  return range ? range->memory + (address - range->address) : address;
}

static uint64_t draw(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static void make_next(struct stream *stream) {
  struct copy *copy = &stream->copies[stream->made % COPIES];
  if (!copy->from) {
    if (copy->bytes == sizeof(uint64_t))
      __atomic_store_n((uint64_t *)copy->to, copy->value, __ATOMIC_RELEASE);
    else
      __atomic_store_n((uint32_t *)copy->to, (uint32_t)copy->value, __ATOMIC_RELEASE);
    stream->made++;
    return;
  }
  size_t pieces = (copy->bytes + PIECE - 1) / PIECE, first = draw() % pieces;
  for (size_t i = 0; i < pieces; i++) {
    size_t at = (first + pieces - i) % pieces * PIECE;
    size_t bytes = copy->bytes - at < PIECE ? copy->bytes - at : PIECE;
    memcpy(copy->to + at, copy->from + at, bytes);
  }
  stream->made++;
}

/* The program's context is current on every thread that has set no other. */
static __thread void *current = &synchronizations;
static int copiesBesideTheProgram;

/* A context that is not the program's. Its memory is never freed, so that a use after its destruction is detected. */
struct context {
  int threads; /* number of threads on which the context is current, guarded by the lock */
  int destroyed;
};

static pthread_key_t left;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Noreturn void misused(const char *how) {
  fprintf(stderr, "stub of libcuda: %s\n", how);
  abort();
}

/*
 * A thread ended while a context of Millrace was current on it. The driver then uses the context, possibly after other
 * threads have seen the end of the thread.
 */
static void end_thread(void *context) {
  (void)context;
  misused("a thread ends in a context that is not the program's");
}

static void make_key(void) {
  if (pthread_key_create(&left, end_thread))
    abort();
}

static int is_own(const void *context) {
  return context && context != &synchronizations;
}

static void make_current(struct context *next) {
  struct context *before = current;
  pthread_once(&once, make_key);
  pthread_mutex_lock(&lock);
  if (is_own(before))
    before->threads--;
  if (is_own(next)) {
    if (next->destroyed)
      misused("a context is made current that was destroyed");
    next->threads++;
  }
  pthread_mutex_unlock(&lock);
  pthread_setspecific(left, is_own(next) ? next : NULL);
  current = next;
}

int cuInit(unsigned flags) {
  return flags == 0 ? 0 : 1;
}

int cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}

int cuCtxGetCurrent(void **context) {
  *context = current;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  make_current(context);
  return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) {
  if (flags || device || getenv("STUB_CUDA_NO_CONTEXT"))
    return INVALID;
  make_current(*context = calloc(1, sizeof(struct context)));
  return 0;
}

int cuCtxPopCurrent_v2(void **context) {
  *context = current;
  make_current((void *)&synchronizations);
  return 0;
}

int cuCtxDestroy_v2(struct context *context) {
  /* The driver would leave the thread without a context, but before, the program's context was current on it. */
  if (current == context)
    misused("a context is destroyed by a thread that was left in it");
  pthread_mutex_lock(&lock);
  if (context->destroyed || context->threads)
    misused("a context is destroyed that is current on another thread, or was destroyed before");
  context->destroyed = 1;
  pthread_mutex_unlock(&lock);
  return 0;
}

int cuCtxGetDevice(int *device) {
  *device = 0;
  return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return 0;
}

int cuCtxSynchronize(void) {
  while (getenv("STUB_CUDA_BUSY"))
    pause();
  __atomic_add_fetch(&synchronizations, 1, __ATOMIC_RELAXED);
  return 0;
}

/* Returns the number of queries that found the device idle. */
int stubSynchronizations(void) {
  return __atomic_load_n(&synchronizations, __ATOMIC_RELAXED);
}

int cuGetErrorName(int code, const char **name) {
  *name = code == NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}

int cuCtxGetStreamPriorityRange(int *lowest, int *highest) {
  if (lowest)
    *lowest = 0;
  *highest = -1;
  return 0;
}

static void replace_stream(struct stream *from, struct stream *to) {
  int i = 0;
  pthread_mutex_lock(&lock);
  while (streams[i] != from)
    i++;
  streams[i] = to;
  pthread_mutex_unlock(&lock);
}

int cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority) {
  (void)flags, (void)priority;
  *stream = calloc(1, sizeof **stream);
  replace_stream(NULL, *stream);
  return 0;
}

int cuStreamDestroy_v2(struct stream *stream) {
  replace_stream(stream, NULL);
  free(stream);
  return 0;
}

/* Delays all copies of the device until the given number of queries was made. */
void stubHold(long looks) {
  pthread_mutex_lock(&lock);
  held = looks;
  pthread_mutex_unlock(&lock);
}

/* Completes all copies that have begun. A real device completes them without queries. */
void stubMakeAll(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < RANGES; i++)
    while (streams[i] && streams[i]->made != streams[i]->begun)
      make_next(streams[i]);
  pthread_mutex_unlock(&lock);
}

int cuStreamQuery(struct stream *stream) {
  pthread_mutex_lock(&lock);
  if (held > 0)
    held--;
  else if (stream->made != stream->begun)
    make_next(stream);
  int code = stream->made == stream->begun ? 0 : NOT_READY;
  pthread_mutex_unlock(&lock);
  return code;
}

static void begin(char *to, char *from, size_t bytes, struct stream *stream) {
  while (stream->begun - stream->made == COPIES)
    make_next(stream);
  copiesBesideTheProgram += current == &synchronizations;
  if (range_of(to) && range_of(from))
    withinDevice++;
  else
    withHost++;
  /*
   * Determines the location of the memory now, because the memory may be unmapped before the copy is made. On a real
   * device such memory stays.
   */
  stream->copies[stream->begun++ % COPIES] = (struct copy){processors_memory(to), processors_memory(from), bytes, 0};
}

/* Returns whether the range is device memory. Processors access host memory at its own address. */
static int is_device(const struct range *range) {
  return range && range->address != range->memory;
}

int cuMemcpyAsync(char *to, char *from, size_t bytes, struct stream *stream) {
  pthread_mutex_lock(&lock);
  struct range *target = range_of(to), *source = range_of(from);
  if (is_device(source))
    behindKernels += is_device(target) && source->descriptor >= 0 && target->descriptor >= 0;
  else
    behindKernels += is_device(target) && bytes > 1 && bytes < 32 << 10;
  begin(to, from, bytes, stream);
  pthread_mutex_unlock(&lock);
  return 0;
}

/* CUDA_MEMCPY2D_v2. */
struct rows {
  size_t fromX, fromY;
  int fromType;
  const void *fromHost;
  char *from;
  void *fromArray;
  size_t fromPitch, toX, toY;
  int toType;
  void *toHost;
  char *to;
  void *toArray;
  size_t toPitch, width, height;
};

/* Copies rows in an order that looks random. */
int cuMemcpy2DAsync_v2(const struct rows *rows, struct stream *stream) {
  if (rows->fromX || rows->fromY || rows->fromType != 4 || rows->toX || rows->toY || rows->toType != 4 || rows->width == 0 ||
      rows->height < 2 || rows->fromPitch < rows->width || rows->toPitch < rows->width || rows->fromPitch >= 1L << 31 ||
      rows->toPitch >= 1L << 31)
    return INVALID;
  pthread_mutex_lock(&lock);
  if (range_of(rows->to) != range_of(rows->to + (rows->height - 1) * rows->toPitch) ||
      range_of(rows->from) != range_of(rows->from + (rows->height - 1) * rows->fromPitch)) {
    pthread_mutex_unlock(&lock);
    return INVALID;
  }
  size_t first = draw() % rows->height;
  for (size_t i = 0; i < rows->height; i++) {
    size_t row = (first + rows->height - i) % rows->height;
    begin(rows->to + row * rows->toPitch, rows->from + row * rows->fromPitch, rows->width, stream);
  }
  rowCalls++;
  rowsInAll += (long)rows->height;
  pthread_mutex_unlock(&lock);
  return 0;
}

static int store(struct stream *stream, char *to, uint64_t value, size_t bytes, unsigned flags) {
  if ((uintptr_t)to % bytes || flags)
    return INVALID;
  pthread_mutex_lock(&lock);
  while (stream->begun - stream->made == COPIES)
    make_next(stream);
  copiesBesideTheProgram += current == &synchronizations;
  withHost++;
  stream->copies[stream->begun++ % COPIES] = (struct copy){processors_memory(to), NULL, bytes, value};
  pthread_mutex_unlock(&lock);
  return 0;
}

int cuStreamWriteValue64_v2(struct stream *stream, char *to, uint64_t value, unsigned flags) {
  return store(stream, to, value, sizeof value, flags);
}

int cuStreamWriteValue32_v2(struct stream *stream, char *to, uint32_t value, unsigned flags) {
  return store(stream, to, value, sizeof value, flags);
}

#define HOST_POINTER 4

int cuPointerGetAttribute(void **value, int attribute, char *address) {
  pthread_mutex_lock(&lock);
  int refused = attribute != HOST_POINTER || is_device(range_of(address));
  pthread_mutex_unlock(&lock);
  *value = refused ? NULL : address;
  return refused ? INVALID : 0;
}

/* Returns the number of copies that a kernel of another context could delay. */
long stubBehindKernels(void) {
  pthread_mutex_lock(&lock);
  long counted = behindKernels;
  pthread_mutex_unlock(&lock);
  return counted;
}

/* Returns the number of calls that copied several rows, or the number of rows. */
long stubRows(int all) {
  pthread_mutex_lock(&lock);
  long counted = all ? rowsInAll : rowCalls;
  pthread_mutex_unlock(&lock);
  return counted;
}

/* Copies in an order that looks random. With STUB_CUDA_NO_BATCH it refuses, as a driver without support does. */
int cuMemcpyBatchAsync(char **to, char **from, size_t *bytes, size_t count, const int *attributes, const size_t *indices,
                       size_t howMany, size_t *failed, struct stream *stream) {
  if (count < 2 || attributes[0] != 1 || indices[0] != 0 || howMany != 1 || getenv("STUB_CUDA_NO_BATCH")) {
    *failed = 0;
    return INVALID;
  }
  size_t first = draw() % count;
  for (size_t i = 0; i < count; i++) {
    size_t at = (first + count - i) % count;
    cuMemcpyAsync(to[at], from[at], bytes[at], stream);
  }
  pthread_mutex_lock(&lock);
  batches++;
  batched += (long)count;
  pthread_mutex_unlock(&lock);
  return 0;
}

/* Returns the number of copies that were begun in batches, or the number of calls that began them. */
long stubBatches(int copies) {
  pthread_mutex_lock(&lock);
  long counted = copies ? batched : batches;
  pthread_mutex_unlock(&lock);
  return counted;
}

int cuEventCreate(struct event **event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof **event);
  return 0;
}

int cuEventDestroy_v2(struct event *event) {
  free(event);
  return 0;
}

int cuEventRecord(struct event *event, struct stream *stream) {
  pthread_mutex_lock(&lock);
  *event = (struct event){stream, stream->begun};
  records++;
  pthread_mutex_unlock(&lock);
  return 0;
}

int cuEventQuery(struct event *event) {
  int code = 0;
  pthread_mutex_lock(&lock);
  if (event->stream && event->stream->made < event->number) {
    if (held > 0)
      held--;
    else if (draw() % 4 == 0)
      make_next(event->stream);
    code = event->stream->made < event->number ? NOT_READY : 0;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  return posix_memalign(memory, 4096, bytes) ? 2 : 0;
}

int cuMemFreeHost(void *memory) {
  free(memory);
  return 0;
}

/*
 * Allocates memory of several physical segments at consecutive addresses. Stores in *memory the address that kernels
 * use. Processors access host memory at its own address too.
 */
char *stubAllocateSegments(int count, const size_t *bytes, int ofHost, char **memory) {
  size_t all = 0, at = 0;
  for (int i = 0; i < count; i++)
    all += bytes[i];
  pthread_mutex_lock(&lock);
  *memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *address = ofHost ? *memory : mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED || *memory == MAP_FAILED)
    abort();
  for (int i = 0; i < count; at += bytes[i++]) {
    struct range *range = free_range();
    *range = (struct range){address + at, *memory + at, bytes[i], memfd_create("device", 0)};
    if (range->descriptor < 0 || ftruncate(range->descriptor, (off_t)bytes[i]) != 0 ||
        mmap(range->memory, bytes[i], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, range->descriptor, 0) == MAP_FAILED)
      abort();
  }
  pthread_mutex_unlock(&lock);
  return address;
}

/* Allocates device memory. Stores in *memory the address that kernels use. */
char *stubAllocate(size_t bytes, char **memory) {
  size_t pages = (bytes + 4095) / 4096 * 4096;
  return stubAllocateSegments(1, &pages, 0, memory);
}

/* Returns the address that kernels use for a device address. */
char *stubMemory(char *address) {
  pthread_mutex_lock(&lock);
  char *memory = processors_memory(address);
  pthread_mutex_unlock(&lock);
  return memory;
}

/* Frees memory segment by segment. A copy that still uses it ends the process. */
void stubFree(char *address) {
  pthread_mutex_lock(&lock);
  struct range *range = range_of(address);
  close(range->descriptor);
  munmap(range->memory, range->bytes);
  munmap(range->address, range->bytes);
  range->bytes = 0;
  pthread_mutex_unlock(&lock);
}

long stubRecords(void) {
  pthread_mutex_lock(&lock);
  long recorded = records;
  pthread_mutex_unlock(&lock);
  return recorded;
}

/* Returns the number of copies in the program's context. */
int stubInProgramsContext(void) {
  return copiesBesideTheProgram;
}

long stubCopies(int withinTheDevice) {
  pthread_mutex_lock(&lock);
  long copies = withinTheDevice ? withinDevice : withHost;
  pthread_mutex_unlock(&lock);
  return copies;
}

int cuMemGetAddressRange_v2(char **base, size_t *bytes, char *address) {
  pthread_mutex_lock(&lock);
  struct range *range = range_of(address);
  if (range) {
    *base = range->address;
    *bytes = range->bytes;
  }
  pthread_mutex_unlock(&lock);
  return range ? 0 : INVALID;
}

/* A DMA-BUF begins where the memory does. The file position of this file states where that is. */
int cuMemGetHandleForAddressRange(void *descriptor, char *address, size_t bytes, int type, unsigned long flags) {
  pthread_mutex_lock(&lock);
  struct range *range = range_of(address);
  int within = range && type == 1 && flags == 0 && address + bytes <= (char *)range->address + range->bytes;
  *(int *)descriptor = within ? dup(range->descriptor) : -1;
  if (within)
    lseek(range->descriptor, address - (char *)range->address, SEEK_SET);
  pthread_mutex_unlock(&lock);
  return within ? 0 : INVALID;
}

int cuMemRetainAllocationHandle(long *handle, char *address) {
  pthread_mutex_lock(&lock);
  struct range *range = range_of(address);
  *handle = range ? dup(range->descriptor) : -1;
  pthread_mutex_unlock(&lock);
  return range ? 0 : INVALID;
}

int cuMemExportToShareableHandle(void *descriptor, long handle, int type, unsigned long flags) {
  if (getenv("STUB_CUDA_NO_EXPORT"))
    return NOT_SUPPORTED;
  *(int *)descriptor = dup((int)handle);
  return type == 1 && flags == 0 ? 0 : INVALID;
}

int cuMemImportFromShareableHandle(long *handle, long descriptor, int type) {
  if (getenv("STUB_CUDA_NO_IMPORT"))
    return NOT_SUPPORTED;
  *handle = dup((int)descriptor);
  return type == 1 ? 0 : INVALID;
}

int cuMemRelease(long handle) {
  return close((int)handle) ? INVALID : 0;
}

int cuMemAddressReserve(char **address, size_t bytes, size_t alignment, char *wanted, unsigned long flags) {
  (void)alignment, (void)wanted, (void)flags;
  pthread_mutex_lock(&lock);
  struct range *range = free_of(reserved);
  range->address = *address = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  range->memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int failed = range->address == MAP_FAILED || range->memory == MAP_FAILED;
  range->bytes = failed ? 0 : bytes;
  pthread_mutex_unlock(&lock);
  return failed ? 2 : 0;
}

int cuMemAddressFree(char *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct range *range = find(reserved, address);
  int wrong = !range || range->bytes != bytes || range_of(address);
  if (!wrong) {
    munmap(range->memory, bytes);
    munmap(address, bytes);
    range->bytes = 0;
  }
  pthread_mutex_unlock(&lock);
  return wrong ? INVALID : 0;
}

int cuMemMap(char *address, size_t bytes, size_t offset, long handle, unsigned long flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  struct range *within = find(reserved, address);
  int wrong = !within || range_of(address) || address + bytes > within->address + within->bytes;
  if (!wrong) {
    struct range *range = free_range();
    char *memory = mmap(within->memory + (address - within->address), bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, (int)handle, (off_t)offset);
    wrong = memory == MAP_FAILED;
    if (!wrong)
      *range = (struct range){address, memory, bytes, -1};
  }
  pthread_mutex_unlock(&lock);
  return wrong ? INVALID : 0;
}

int cuMemSetAccess(char *address, size_t bytes, const int *access, size_t count) {
  struct range *range = range_of(address);
  return range && range->bytes == bytes && count == 1 && access[0] == 1 && access[2] == 3 ? 0 : INVALID;
}

/* Unmaps the memory. A copy that still uses it ends the process. */
int cuMemUnmap(char *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  struct range *range = range_of(address);
  int wrong = !range || range->address != address || range->bytes != bytes;
  if (!wrong) {
    mmap(range->memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    range->bytes = 0;
  }
  pthread_mutex_unlock(&lock);
  return wrong ? INVALID : 0;
}
