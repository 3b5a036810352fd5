/*
 * Records NCCL's profiler events of operations, in memory that Java allocates for each communicator and that other
 * processes read. A handle is a number and not a pointer, because it may outlive its operation: at the event's end, the
 * record may belong to another operation, and the place to another communicator. Communicators that share resources
 * have one progress thread in NCCL, which may report a kernel of a communicator that has ended.
 *
 *   63          52 51       44 43        36 35        34               0
 *  +--------------+-----------+------------+----------+-----------------+
 *  | place + 1    | channel+1 | use count  | transfer | operation       |
 *  +--------------+-----------+------------+----------+-----------------+
 */
#include "operations.h"
#include "profiler.h"

#include <string.h>
#include <time.h>

#define PLACE_SHIFT 52
#define CHANNEL_SHIFT 44
#define CHANNEL_MASK 0xff
#define TAKEN_SHIFT 36
#define TAKEN_MASK 0xff
#define TRANSFER (1ULL << 35)
#define NUMBER_MASK (TRANSFER - 1)
#define PLACES 4095
#define CHANNELS_KEPT 64
/*
 * Pause between two operations, in nanoseconds, after which Java's threads may be asleep. The threads are then woken.
 */
#define PAUSE_NANOSECONDS 1000000

/*
 * Open communicators. NCCL's context of a communicator is the address of its entry. operations is null if the entry is
 * free. NCCL launches a communicator's operations on one thread at a time, and reports kernels on its progress thread.
 */
static struct place {
  millraceOperations *operations;
  int64_t enqueued;
  int64_t collectives;
  uint64_t taken;
  /* For each kind of event, the number of begun events and then the number of ended events. */
  int64_t events[2 * MILLRACE_KINDS];
  int64_t latest;
} places[PLACES];

/* Returns the handle of an event. what has the bits that identify a channel's block or a transfer. */
static void *handle_of(const struct place *place, uint64_t what, uint64_t number) {
  uint64_t taken = __atomic_load_n(&place->taken, __ATOMIC_RELAXED) & TAKEN_MASK;
  return (void *)((uint64_t)(place - places + 1) << PLACE_SHIFT | taken << TAKEN_SHIFT | what | (number & NUMBER_MASK));
}

/* Returns the communicator of a handle; null if it is no longer open. */
static struct place *place_of(void *handle) {
  uint64_t number = (uint64_t)handle >> PLACE_SHIFT;
  struct place *place = number ? &places[number - 1] : NULL;
  return place && __atomic_load_n(&place->operations, __ATOMIC_ACQUIRE) &&
                 (__atomic_load_n(&place->taken, __ATOMIC_RELAXED) & TAKEN_MASK) ==
                     ((uint64_t)handle >> TAKEN_SHIFT & TAKEN_MASK)
             ? place
             : NULL;
}

static uint64_t channel_of(void *handle) {
  return (uint64_t)handle >> CHANNEL_SHIFT & CHANNEL_MASK;
}

static enum millraceKind kind_of(void *handle) {
  return channel_of(handle) ? MILLRACE_BLOCKS : (uint64_t)handle & TRANSFER ? MILLRACE_TRANSFERS : MILLRACE_COLLECTIVES;
}

static void count(struct place *place, void *handle, int ended) {
  __atomic_add_fetch(&place->events[2 * kind_of(handle) + ended], 1, __ATOMIC_RELAXED);
}

/* Returns the record of an operation; null if another operation has replaced it. */
static millraceOperation *record_of(struct place *place, void *handle) {
  uint64_t number = (uint64_t)handle & NUMBER_MASK;
  uint64_t newest = (uint64_t)__atomic_load_n(&place->enqueued, __ATOMIC_ACQUIRE);
  return ((newest - number) & NUMBER_MASK) < MILLRACE_OPERATION_RECORDS
             ? &place->operations->records[number % MILLRACE_OPERATION_RECORDS]
             : NULL;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static const struct {
  const char *name;
  int number;
  int bytes;
} types[] = {{"ncclInt8", 0, 1},     {"ncclUint8", 1, 1},   {"ncclInt32", 2, 4},    {"ncclUint32", 3, 4},
             {"ncclInt64", 4, 8},    {"ncclUint64", 5, 8},  {"ncclFloat16", 6, 2},  {"ncclFloat32", 7, 4},
             {"ncclFloat64", 8, 8},  {"ncclBfloat16", 9, 2}, {"ncclFloat8e4m3", 10, 1}, {"ncclFloat8e5m2", 11, 1}};

static void say_type(millraceOperation *record, const char *type) {
  record->type = -1;
  record->bytes = -1;
  for (size_t i = 0; type && i < sizeof types / sizeof types[0]; i++)
    if (strcmp(types[i].name, type) == 0) {
      record->type = types[i].number;
      record->bytes = record->count * types[i].bytes;
    }
}

/* Adds a word to a text, if there is room. The bytes after the text are zero. */
static void append(char *text, size_t size, const char *word) {
  size_t used = strlen(text);
  if (!word || used + 2 >= size)
    return;
  if (used)
    text[used++] = ' ';
  strncpy(text + used, word, size - 1 - used);
}

static void count_function(millraceOperations *operations, const char *function) {
  static const char *const names[MILLRACE_FUNCTIONS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                        "AllReduce"};
  for (int i = 0; function && i < MILLRACE_FUNCTIONS; i++)
    if (strcmp(names[i], function) == 0)
      __atomic_store_n(&operations->functions[i], operations->functions[i] + 1, __ATOMIC_RELAXED);
}

/* Takes a free entry for Java's memory of a communicator. Returns null if none is free. */
static struct place *take(millraceOperations *operations) {
  for (int i = 0; i < PLACES; i++) {
    struct place *place = &places[i];
    millraceOperations *none = NULL;
    if (__atomic_compare_exchange_n(&place->operations, &none, operations, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      __atomic_add_fetch(&place->taken, 1, __ATOMIC_RELAXED);
      place->enqueued = place->collectives = place->latest = 0;
      memset(place->events, 0, sizeof place->events);
      return place;
    }
  }
  return NULL;
}

/*
 * A process without Java, or with events disabled by the user, receives a null context and no events. init must not
 * fail in any version, because NCCL 2.28 and 2.29 continue to call a failed profiler.
 */
ncclResult_t profilerInit(void **context, uint64_t communicator, int *mask, int nodes, int ranks, int rank) {
  millraceCall_t call = millraceInstalled();
  millraceOperations *operations = NULL;
  *context = NULL;
  *mask = 0;
  if (!call || MILLRACE_CALL(call, profilerInit, (void **)&operations, mask, communicator, nodes, ranks, rank) ||
      !operations) {
    *mask = 0;
    return ncclSuccess;
  }
  *context = take(operations);
  return ncclSuccess;
}

ncclResult_t profilerFinalize(void *context) {
  struct place *place = context;
  if (!place)
    return ncclSuccess;
  millraceOperations *operations = place->operations;
  int64_t events[2 * MILLRACE_KINDS];
  memcpy(events, place->events, sizeof events);
  __atomic_store_n(&place->operations, NULL, __ATOMIC_RELEASE);
  MILLRACE_FORWARD(profilerFinalize, operations, events);
}

void profilerEnqueued(void *context, void **handle, const struct millraceEnqueued *operation) {
  struct place *place = context;
  millraceOperations *operations = place->operations;
  int64_t number = place->enqueued, time = now();
  millraceCall_t call = time - place->latest > PAUSE_NANOSECONDS ? millraceInstalled() : NULL;
  place->latest = time;
  /* Wakes Java's threads before anything else, because the kernel will wait for them. */
  if (call)
    MILLRACE_CALL(call, profilerPauseEnded, operations);
  millraceOperation *record = &operations->records[number % MILLRACE_OPERATION_RECORDS];
  /*
   * operations->enqueued has equaled this operation's number since the previous operation was recorded. Readers use
   * only the MILLRACE_OPERATION_RECORDS - 1 newest records, and so never the record that is overwritten here. The fence
   * orders that count before the stores of this record. It pairs with the second reading of the count in TraceReader.
   */
  __atomic_thread_fence(__ATOMIC_RELEASE);
  record->sequence = operation->collective ? place->collectives++ : -1;
  record->count = (int64_t)operation->count;
  say_type(record, operation->type);
  record->channels = operation->channels;
  record->peer = operation->collective ? -1 : operation->root;
  record->root = operation->collective ? operation->root : -1;
  record->enqueued = time;
  record->started = record->ended = 0;
  record->channelsStarted = record->channelsEnded = 0;
  memset(record->name, 0, sizeof record->name);
  memset(record->how, 0, sizeof record->how);
  append(record->name, sizeof record->name, operation->function);
  append(record->how, sizeof record->how, operation->algorithm);
  append(record->how, sizeof record->how, operation->protocol);
  count_function(operations, operation->function);
  __atomic_store_n(&place->enqueued, number + 1, __ATOMIC_RELEASE);
  __atomic_store_n(&operations->enqueued, number + 1, __ATOMIC_RELEASE);
  *handle = handle_of(place, operation->collective ? 0 : TRANSFER, (uint64_t)number);
  count(place, *handle, 0);
}

void profilerBlockStarted(void *context, void **handle, void *operation, int channel) {
  struct place *place = context;
  millraceOperation *record = operation && place_of(operation) == place ? record_of(place, operation) : NULL;
  if (!record)
    return;
  if (!record->started)
    record->started = now();
  if (channel < CHANNELS_KEPT)
    __atomic_store_n(&record->channelsStarted, record->channelsStarted | 1ULL << channel, __ATOMIC_RELEASE);
  *handle = handle_of(place, (uint64_t)(channel + 1) << CHANNEL_SHIFT, (uint64_t)operation);
  count(place, *handle, 0);
}

ncclResult_t profilerStop(void *handle) {
  struct place *place = place_of(handle);
  if (place)
    count(place, handle, 1);
  return ncclSuccess;
}

/* Records that a block of a kernel has ended. */
ncclResult_t profilerRecord(void *handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v4_t *arguments) {
  struct place *place = place_of(handle);
  uint64_t channel = channel_of(handle);
  (void)arguments;
  millraceOperation *record =
      place && state == ncclProfilerKernelChStop && channel ? record_of(place, handle) : NULL;
  if (!record)
    return ncclSuccess;
  record->ended = now();
  if (channel <= CHANNELS_KEPT)
    __atomic_store_n(&record->channelsEnded, record->channelsEnded | 1ULL << (channel - 1), __ATOMIC_RELEASE);
  return ncclSuccess;
}
