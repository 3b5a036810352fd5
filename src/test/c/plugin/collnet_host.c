/*
 * Ranks that reduce through one version of the collective network table. Each rank is a process that does the work of
 * NCCL's proxy and kernels. Usage: LIBRARY RANKS CHANNELS OPERATIONS SEED WAY.
 * - run: every operation of all ranks is checked.
 * - late: the last rank begins each operation only when the other ranks cannot continue without it.
 * - kill: the last rank dies by SIGKILL halfway, and the others receive an error.
 * - refused: no rank is connected, because the last one has MILLRACE_TEST_LAST_SECRET and MILLRACE_TEST_LAST_TLS.
 * - abort: ranks end as aborted communicators do, before the last rank has begun.
 * - disagree: the last rank requests another operator.
 */
#define _GNU_SOURCE
#include "versions.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef JOIN(ncclCollNet_v, NET_VERSION, _t) collnet_t;
typedef JOIN(ncclNetSGE_v, NET_VERSION, _t) part_t;
#define COLLNET_NAME "ncclCollNetPlugin_v" STRING(NET_VERSION)

#if NET_VERSION >= 11
#define COLLNET_INIT(net, ctx) (net)->init(ctx, 0x1234, logger)
#define COLLNET_LISTEN(net, ctx, ...) (net)->listen(ctx, __VA_ARGS__)
#else
#if NET_VERSION == 10
#define COLLNET_INIT(net, ctx) ((void)(ctx), (void)config10, (net)->init(logger))
#else
#define COLLNET_INIT(net, ctx) ((void)(ctx), (net)->init(logger))
#endif
#define COLLNET_LISTEN(net, ctx, ...) ((void)(ctx), (net)->listen(__VA_ARGS__))
#endif

#define MAX_RANKS 8
#define MAX_CHANNELS 32
#define STEPS 8
/* Number of channels whose slots can share one request. */
#define GROUP 8
#define SLOT_BYTES (16 << 10)
#define MAX_GROUPS (MAX_CHANNELS / GROUP)
/* Number of passes without progress after which a rank reports that it waits. */
#define PATIENCE 500

enum function { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, FUNCTIONS };

/* Memory of all ranks that replaces NCCL's bootstrap. */
struct shared {
  char handles[MAX_RANKS][NCCL_NET_HANDLE_MAXSIZE];
  volatile int arrived;
  /* Number of ranks that cannot continue, per operation. */
  volatile int waiting[1024];
  int begun[1024];
};

struct operation {
  enum function function;
  ncclDataType_t type;
  ncclRedOp_t op;
  int number;
  int steps;
  size_t chunk;
  size_t perRank;
};

/*
 * Counters of a channel in one operation, in steps: those of the kernel, of the sending proxy, of the receiving proxy.
 */
struct channel {
  uint64_t head, tail, received_head, received_tail;
  size_t offset[STEPS], received_offset[STEPS];
  long size[STEPS];
  int posted, received, transmitted, done;
  int slots, arrived, shown, finished;
  int sent, taken;
};

struct request_slot {
  int turnIsSend;
  void *request;
};

struct rank {
  int number, ranks, channels, operations;
  const net_t *net;
  const collnet_t *collnet;
  void *ctx, *collnetCtx, *comm;
  char *memory;
  size_t memoryBytes;
  void *sendMhandles[MAX_CHANNELS], *recvMhandles[MAX_CHANNELS];
  struct channel channel[MAX_CHANNELS];
  struct request_slot slot[MAX_GROUPS][STEPS];
  int supported[ncclNumTypes][ncclNumOps];
  int pairs;
};

static struct shared *shared;
static uint64_t seed;
static const char *way;

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

static void meet(const struct rank *rank, int times) {
  __atomic_add_fetch(&shared->arrived, 1, __ATOMIC_SEQ_CST);
  while (shared->arrived < times * rank->ranks)
    let_others_run();
}

static size_t type_bytes(ncclDataType_t type) {
  static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return bytes[type];
}

/* Returns the number of exponent and fraction bits, 0 for an integer. */
static int exponent_bits(ncclDataType_t type) {
  static const int bits[ncclNumTypes] = {[ncclFloat16] = 5, [ncclFloat32] = 8, [ncclFloat64] = 11, [ncclBfloat16] = 8,
                                         [ncclFloat8e4m3] = 4, [ncclFloat8e5m2] = 5};
  return bits[type];
}

/* Returns the exact encoding of a small number in a type. */
static uint64_t encode(ncclDataType_t type, int value) {
  int exponent = exponent_bits(type);
  if (exponent == 0 || value == 0)
    return (uint64_t)value;
  int fraction = (int)type_bytes(type) * 8 - 1 - exponent;
  int log = 31 - __builtin_clz((unsigned)value);
  uint64_t bias = (1ULL << (exponent - 1)) - 1;
  uint64_t rest = (uint64_t)(value - (1 << log));
  rest = log <= fraction ? rest << (fraction - log) : rest >> (log - fraction);
  return (bias + (uint64_t)log) << fraction | rest;
}

/* Returns a rank's value for an element of the whole buffer: 0, 1 or 2. */
static int element(const struct operation *o, int rank, uint64_t index) {
  uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15ULL ^ (uint64_t)(o->number * 64 + rank + 1) * 0xd1342543de82ef95ULL;
  return (int)((mixed >> 33) % 3);
}

static int reduced(const struct operation *o, int ranks, uint64_t index) {
  int result = element(o, 0, index);
  for (int rank = 1; rank < ranks; rank++) {
    int next = element(o, rank, index);
    switch (o->op) {
    case ncclSum: result += next; break;
    case ncclProd: result *= next; break;
    case ncclMax: result = next > result ? next : result; break;
    default: result = next < result ? next : result; break;
    }
  }
  return result;
}

static void put(char *at, ncclDataType_t type, int value) {
  uint64_t bits = encode(type, value);
  memcpy(at, &bits, type_bytes(type));
}

static size_t clamp(size_t value, size_t least, size_t most) {
  return value < least ? least : value > most ? most : value;
}

/* Returns the offset of a channel's chunk of a step: in the buffer of all ranks, or within this rank's part of it. */
static size_t chunk_begin(const struct rank *rank, const struct operation *o, int all, int channel, int step) {
  size_t offset = ((size_t)step * (size_t)rank->channels + (size_t)channel) * o->chunk;
  size_t from = all ? 0 : (size_t)rank->number * o->perRank;
  size_t to = all ? (size_t)rank->ranks * o->perRank : from + o->perRank;
  return clamp(offset, from, to);
}

/* Returns whether an end (sending or receiving) of an operation has the bytes of all ranks, or only of this rank. */
static int has_all(const struct operation *o, int receives) {
  return receives == (o->function == ALL_GATHER);
}

/* Returns the memory offset of a channel's chunk of a step, or of the next channel's. The chunks of a group adjoin. */
static size_t region_offset(const struct rank *rank, const struct operation *o, int receives, int channel, int step,
                            int next) {
  size_t base = (size_t)(receives * STEPS + step % STEPS) * (size_t)rank->channels * SLOT_BYTES;
  if (o->function == ALL_REDUCE)
    return base + (size_t)(channel + next) * o->chunk;
  int first = channel - channel % GROUP, all = has_all(o, receives);
  return base + (size_t)first * SLOT_BYTES + chunk_begin(rank, o, all, channel + next, step) -
         chunk_begin(rank, o, all, first, step);
}

/* Fills or checks the memory at an offset. The memory contains consecutive elements of the buffer of all ranks. */
static void write_elements(const struct rank *rank, const struct operation *o, size_t at, size_t begin, size_t bytes) {
  size_t width = type_bytes(o->type);
  for (size_t i = 0; i < bytes; i += width)
    put(rank->memory + at + i, o->type, element(o, rank->number, (begin + i) / width));
}

static void check_elements(const struct rank *rank, const struct operation *o, size_t at, size_t begin, size_t bytes) {
  size_t width = type_bytes(o->type);
  for (size_t i = 0; i < bytes; i += width) {
    uint64_t index = (begin + i) / width;
    char expected[8] = {0};
    int value = o->function == ALL_GATHER ? element(o, (int)((begin + i) / o->perRank), index)
                                          : reduced(o, rank->ranks, index);
    put(expected, o->type, value);
    REQUIRE(memcmp(expected, rank->memory + at + i, width) == 0,
            "rank %d, operation %d (function %d, type %d, op %d), element %lu (seed %lu)", rank->number, o->number,
            o->function, o->type, o->op, (unsigned long)index, (unsigned long)seed);
  }
}

/* Runs a channel's kernel: it writes into the slots that the proxy has freed, and reads the arrived data. */
static int run_kernel(struct rank *rank, const struct operation *o, int c) {
  struct channel *channel = &rank->channel[c];
  int work = 0;
  if (channel->sent < o->steps && (long)channel->head > channel->sent - STEPS) {
    int slot = channel->sent % STEPS, all = has_all(o, 0);
    size_t begin = o->function == ALL_REDUCE
                       ? ((size_t)channel->sent * (size_t)rank->channels + (size_t)c) * o->chunk
                       : chunk_begin(rank, o, all, c, channel->sent);
    size_t bytes = o->function == ALL_REDUCE ? o->chunk : chunk_begin(rank, o, all, c + 1, channel->sent) - begin;
    write_elements(rank, o, channel->offset[slot], begin, bytes);
    channel->size[slot] = (long)bytes;
    channel->tail = (uint64_t)++channel->sent;
    work++;
  }
  if (channel->taken < o->steps && channel->received_tail > (uint64_t)channel->taken) {
    int all = has_all(o, 1);
    size_t begin = o->function == ALL_REDUCE
                       ? ((size_t)channel->taken * (size_t)rank->channels + (size_t)c) * o->chunk
                       : chunk_begin(rank, o, all, c, channel->taken);
    size_t bytes = o->function == ALL_REDUCE ? o->chunk : chunk_begin(rank, o, all, c + 1, channel->taken) - begin;
    check_elements(rank, o, channel->received_offset[channel->taken % STEPS], begin, bytes);
    channel->received_head = (uint64_t)++channel->taken;
    work++;
  }
  return work;
}

static ncclResult_t ask(struct rank *rank, const struct operation *o, int first, int last, int step, void **request) {
  char *send = rank->memory + region_offset(rank, o, 0, first, step, 0);
  char *receive = rank->memory + region_offset(rank, o, 1, first, step, 0);
  size_t begin = chunk_begin(rank, o, 1, first, step), bytes = chunk_begin(rank, o, 1, last + 1, step) - begin;
  part_t part = {rank->recvMhandles[last], receive, 0};
  part.size = bytes;
  switch (o->function) {
  case ALL_REDUCE:
    bytes = region_offset(rank, o, 0, last, step, 1) - region_offset(rank, o, 0, first, step, 0);
    return rank->collnet->iallreduce(rank->comm, send, receive, (size_argument)(bytes / type_bytes(o->type)), o->type,
                                     o->op, rank->sendMhandles[last], rank->recvMhandles[last], request);
  case ALL_GATHER:
    return rank->collnet->iallgather(rank->comm, send, 1, &part, o->perRank, begin, bytes, rank->sendMhandles[last],
                                     request);
  default:
    part.mhandle = rank->sendMhandles[last];
    part.address = send;
    return rank->collnet->ireducescatter(rank->comm, 1, &part, receive, o->perRank, begin, bytes, o->type, o->op,
                                         rank->recvMhandles[last], request);
  }
}

static int is_last(const struct rank *rank, int c) {
  return c % GROUP == GROUP - 1 || c == rank->channels - 1;
}

/*
 * Makes a pass of NCCL's sending proxy over a channel. It frees slots for the kernel, requests whole groups, and
 * completes requests.
 */
static ncclResult_t send_proxy(struct rank *rank, const struct operation *o, int c, int *work) {
  struct channel *channel = &rank->channel[c];
  int first = c - c % GROUP, group = c / GROUP;
  if (channel->posted < o->steps && channel->posted < channel->done + STEPS) {
    channel->offset[channel->posted % STEPS] = region_offset(rank, o, 0, c, channel->posted, 0);
    channel->head = (uint64_t)(++channel->posted - STEPS);
  }
  if (channel->received < channel->posted && channel->size[channel->received % STEPS] != -1 &&
      channel->tail > (uint64_t)channel->received) {
    channel->size[channel->received++ % STEPS] = -1;
    ++*work;
  }
  int ordered = c == 0 ? rank->channel[rank->channels - 1].transmitted == channel->transmitted
                       : channel->transmitted < rank->channel[c - 1].transmitted;
  if (ordered && channel->transmitted < channel->received) {
    struct request_slot *slot = &rank->slot[group][channel->transmitted % STEPS];
    if (is_last(rank, c)) {
      if (!slot->turnIsSend)
        return ncclSuccess;
      size_t sends = region_offset(rank, o, 0, c, channel->transmitted, 1) -
                     region_offset(rank, o, 0, first, channel->transmitted, 0);
      size_t receives = region_offset(rank, o, 1, c, channel->transmitted, 1) -
                        region_offset(rank, o, 1, first, channel->transmitted, 0);
      slot->request = NULL;
      if (sends || receives) {
        ncclResult_t result = ask(rank, o, first, c, channel->transmitted, &slot->request);
        if (result != ncclSuccess || !slot->request)
          return result;
      }
    }
    channel->transmitted++;
    ++*work;
    return ncclSuccess;
  }
  if (is_last(rank, c) && channel->done < channel->transmitted) {
    struct request_slot *slot = &rank->slot[group][channel->done % STEPS];
    int done = 1, size = -1;
    if (slot->request) {
      ncclResult_t result = rank->collnet->test(slot->request, &done, &size);
      if (result != ncclSuccess)
        return result;
    }
    if (done) {
      slot->request = NULL;
      slot->turnIsSend = 0;
      for (int i = first; i <= c; i++)
        rank->channel[i].done++;
      ++*work;
    }
  }
  return ncclSuccess;
}

/*
 * Makes a pass of NCCL's receiving proxy over a channel. It assigns slots for results, and reports them to the kernel.
 */
static void receive_proxy(struct rank *rank, const struct operation *o, int c, int *work) {
  struct channel *channel = &rank->channel[c];
  int first = c - c % GROUP, group = c / GROUP;
  if (is_last(rank, c) && channel->slots < channel->finished + STEPS && channel->slots < o->steps) {
    rank->slot[group][channel->slots++ % STEPS].turnIsSend = 1;
    ++*work;
    return;
  }
  if (is_last(rank, c) && channel->arrived < channel->slots &&
      !rank->slot[group][channel->arrived % STEPS].turnIsSend) {
    for (int i = first; i <= c; i++)
      rank->channel[i].arrived++;
    ++*work;
  }
  if (channel->shown < channel->arrived) {
    channel->received_offset[channel->shown % STEPS] = region_offset(rank, o, 1, c, channel->shown, 0);
    channel->received_tail = (uint64_t)++channel->shown;
    ++*work;
    return;
  }
  int together = c == 0 ? rank->channel[rank->channels - 1].finished == channel->finished
                        : rank->channel[c - 1].finished > channel->finished;
  if (together && channel->finished < channel->shown && (uint64_t)channel->finished < channel->received_head) {
    channel->finished++;
    ++*work;
  }
}

/* Runs an operation until it completes or fails. */
static ncclResult_t run(struct rank *rank, const struct operation *o) {
  int idle = 0, waits = 0;
  memset(rank->channel, 0, sizeof rank->channel);
  memset(rank->slot, 0, sizeof rank->slot);
  for (int c = 0; c < rank->channels; c++) {
    memset(rank->channel[c].size, -1, sizeof rank->channel[c].size);
    rank->channel[c].head = (uint64_t)-STEPS;
  }
  __atomic_add_fetch(&shared->begun[o->number], 1, __ATOMIC_RELEASE);
  int isLate = (is("late") || is("abort")) && rank->number == rank->ranks - 1;
  while (isLate && shared->waiting[o->number] < rank->ranks - 1)
    let_others_run();
  if (isLate && is("abort"))
    return ncclInProgress;
  while (rank->channel[rank->channels - 1].finished < o->steps) {
    int work = 0;
    for (int c = 0; c < rank->channels; c++) {
      ncclResult_t result = send_proxy(rank, o, c, &work);
      if (result != ncclSuccess)
        return result;
      receive_proxy(rank, o, c, &work);
      work += run_kernel(rank, o, c);
    }
    idle = work ? 0 : idle + 1;
    if (is("kill") && o->number == rank->operations / 2 && rank->number == rank->ranks - 1 && work) {
      while (__atomic_load_n(&shared->begun[o->number], __ATOMIC_ACQUIRE) < rank->ranks)
        let_others_run(); /* all other ranks have begun this operation, so they have completed the earlier ones */
      raise(SIGKILL);
    }
    if (idle > PATIENCE && !waits++ && !isLate) {
      __atomic_add_fetch(&shared->waiting[o->number], 1, __ATOMIC_SEQ_CST);
      if (is("abort"))
        return ncclInProgress;
    }
    if (idle)
      let_others_run();
  }
  if (is("late") && !isLate)
    REQUIRE(waits, "rank %d did not wait for the late one", rank->number);
  return ncclSuccess;
}

static void begin(struct rank *rank) {
  int devices = 0;
  properties_t properties, theirs;
  void *handles[MAX_RANKS], *listenComm = NULL;
  SUCCEEDS(net_init(rank->net, &rank->ctx));
  SUCCEEDS(COLLNET_INIT(rank->collnet, &rank->collnetCtx));
  SUCCEEDS(rank->collnet->devices(&devices));
  REQUIRE(devices == 1, "%d devices", devices);
  memset(&properties, 0, sizeof properties);
  memset(&theirs, 0, sizeof theirs);
  SUCCEEDS(rank->collnet->getProperties(0, &properties));
  SUCCEEDS(rank->net->getProperties(0, &theirs));
  REQUIRE(memcmp(&properties, &theirs, sizeof properties) == 0, "the device is not the network's");
  for (int type = 0; type < ncclNumTypes; type++)
    for (int op = 0; op < ncclNumOps; op++) {
      rank->supported[type][op] = -1;
      SUCCEEDS(rank->collnet->reduceSupport((ncclDataType_t)type, (ncclRedOp_t)op, &rank->supported[type][op]));
      rank->pairs += rank->supported[type][op];
    }
  REQUIRE(rank->pairs == 48, "%d pairs of type and operator", rank->pairs);
  SUCCEEDS(COLLNET_LISTEN(rank->collnet, rank->collnetCtx, 0, shared->handles[rank->number], &listenComm));
  meet(rank, 1);
  for (int peer = 0; peer < rank->ranks; peer++)
    handles[peer] = shared->handles[peer];
  if (is("refused")) {
    REQUIRE(rank->collnet->connect(handles, rank->ranks, rank->number, listenComm, &rank->comm) != ncclSuccess,
            "it was connected");
    printf("REFUSED %d\n", rank->number);
    SUCCEEDS(rank->collnet->closeListen(listenComm));
    return;
  }
  SUCCEEDS(rank->collnet->connect(handles, rank->ranks, rank->number, listenComm, &rank->comm));
  REQUIRE(rank->comm, "no group");
  SUCCEEDS(rank->collnet->closeListen(listenComm));
  rank->memoryBytes = 2UL * STEPS * (size_t)rank->channels * SLOT_BYTES;
  rank->memory = mmap(NULL, rank->memoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(rank->memory != MAP_FAILED, "out of memory");
  for (int c = 0; c < rank->channels; c++) {
    SUCCEEDS(rank->collnet->regMr(rank->comm, rank->memory, rank->memoryBytes, NCCL_PTR_HOST, &rank->recvMhandles[c]));
    SUCCEEDS(rank->collnet->regMr(rank->comm, rank->memory, rank->memoryBytes, NCCL_PTR_HOST, &rank->sendMhandles[c]));
  }
  void *device = NULL;
  REQUIRE(rank->collnet->regMr(rank->comm, rank->memory, 4096, NCCL_PTR_CUDA, &device) == ncclInvalidUsage,
          "a GPU's memory was taken");
}

/* Follows NCCL's order: the memory is freed before the group is closed. */
static void end(struct rank *rank) {
  int done;
  for (int c = 0; c < rank->channels; c++) {
    SUCCEEDS(rank->collnet->deregMr(rank->comm, rank->sendMhandles[c]));
    SUCCEEDS(rank->collnet->deregMr(rank->comm, rank->recvMhandles[c]));
  }
  munmap(rank->memory, rank->memoryBytes);
  void *request = NULL;
  REQUIRE(rank->collnet->iallreduce(rank->comm, rank->memory, rank->memory, 4, ncclFloat, ncclSum,
                                    rank->sendMhandles[0], rank->sendMhandles[0], &request) == ncclInvalidArgument,
          "memory that is gone");
  SUCCEEDS(rank->collnet->closeColl(rank->comm));
  REQUIRE(rank->collnet->closeColl(rank->comm) == ncclInvalidArgument, "closed twice");
  REQUIRE(rank->collnet->test((void *)0x7fffffffffffUL, &done, NULL) == ncclInvalidArgument, "invented request");
#if NET_VERSION >= 11
  SUCCEEDS(rank->net->finalize(rank->ctx));
  SUCCEEDS(rank->collnet->finalize(rank->collnetCtx));
#endif
}

static struct operation draw(const struct rank *rank, int number, uint64_t *random) {
  struct operation o = {.number = number};
  o.function = (enum function)(next_random(random) % FUNCTIONS);
  /* Successive operations use successive pairs of type and operator. */
  for (int pair = number % rank->pairs, type = 0; type < ncclNumTypes; type++)
    for (int op = 0; op < ncclNumOps; op++)
      if (rank->supported[type][op] && pair-- == 0) {
        o.type = (ncclDataType_t)type;
        o.op = (ncclRedOp_t)op;
      }
  size_t width = type_bytes(o.type);
  o.steps = 1 + (int)(next_random(random) % 11);
  o.chunk = width * (1 + next_random(random) % (SLOT_BYTES / width));
  if (next_random(random) % 3 == 0)
    o.chunk = width * (1 + next_random(random) % 20);
  /* Windows of all steps cover all parts. The last windows may be empty. */
  size_t most = (size_t)o.steps * (size_t)rank->channels * o.chunk / (size_t)rank->ranks / width;
  o.perRank = width * (most == 0 ? 0 : most - next_random(random) % (most / 4 + 1));
  if (o.perRank == 0)
    o.function = ALL_REDUCE;
  return o;
}

static int one_rank(const char *path, struct rank *rank) {
  if (is("refused") && rank->number == rank->ranks - 1) {
    setenv("MILLRACE_SECRET", getenv("MILLRACE_TEST_LAST_SECRET"), 1);
    setenv("MILLRACE_TLS", getenv("MILLRACE_TEST_LAST_TLS"), 1);
  }
  void *library = open_plugin(path);
  rank->net = symbol(library, TABLE_NAME);
  rank->collnet = symbol(library, COLLNET_NAME);
  begin(rank);
  if (!rank->comm)
    return 0;
  uint64_t random = seed;
  for (int number = 0; number < rank->operations; number++) {
    struct operation o = draw(rank, number, &random);
    if (is("disagree") && rank->number == rank->ranks - 1 && number == rank->operations / 2)
      o.op = o.op == ncclSum ? ncclProd : ncclSum;
    ncclResult_t result = run(rank, &o);
    if (result != ncclSuccess) {
      REQUIRE(is("kill") ? result == ncclRemoteError : is("abort") ? 1 : is("disagree"), "result %d", result);
      REQUIRE(is("abort") || number >= rank->operations / 2, "operation %d failed", number);
      printf("LOST %d\n", rank->number);
      break;
    }
  }
  if (is("abort"))
    meet(rank, 2);
  end(rank);
  REQUIRE(dlclose(library) == 0, "%s", dlerror());
  return 0;
}

int main(int count, char **arguments) {
  REQUIRE(count == 7, "usage: LIBRARY RANKS CHANNELS OPERATIONS SEED run|late|kill|refused|abort|disagree");
  struct rank *rank = calloc(1, sizeof *rank);
  rank->ranks = atoi(arguments[2]);
  rank->channels = atoi(arguments[3]);
  rank->operations = atoi(arguments[4]);
  seed = strtoull(arguments[5], NULL, 0);
  way = arguments[6];
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "out of memory");
  pid_t children[MAX_RANKS];
  for (int i = 1; i < rank->ranks; i++) {
    fflush(NULL);
    children[i] = fork();
    REQUIRE(children[i] >= 0, "no process");
    if (children[i] == 0) {
      rank->number = i;
      exit(one_rank(arguments[1], rank));
    }
  }
  one_rank(arguments[1], rank);
  for (int i = 1; i < rank->ranks; i++) {
    int status, killed = is("kill") && i == rank->ranks - 1;
    REQUIRE(waitpid(children[i], &status, 0) == children[i], "wait");
    REQUIRE(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0, "rank %d ended with %d", i,
            status);
  }
  printf("OK " COLLNET_NAME "\n");
  return 0;
}
