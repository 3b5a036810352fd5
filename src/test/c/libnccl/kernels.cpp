/*
 * The kernel's side of NCCL's protocol on CPU threads: ring and tree in Simple, LL and LL128, send/recv, several
 * broadcasts at once, and the reduction on one rank. A launch's argument block is read as ncclDevKernelArgs. The layouts
 * are those of NCCL 2.30.7.
 */
#include "launch.h"
#include "reduce.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

// ---- NCCL's structures ----

enum Protocol { LL, LL128, SIMPLE };
enum Algorithm { TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT };
enum Collective { SEND_RECV, ALL_GATHER, BROADCAST, ALL_GATHER_V, ALL_REDUCE, REDUCE, REDUCE_SCATTER };
constexpr int STEPS = 8;
enum Mode { NORMAL_MODE, OFFSET_MODE };

struct FifoEntry { // ncclConnFifo
  int mode, offset;
  int64_t size;
  void *pointer;
};

struct Connection { // ncclConnInfo
  char *buffers[3];
  void *handles[3];
  uint64_t *tail, *head;
  int flags, shared, stepSize;
  void **pointerExchange;
  uint64_t *argumentExchange;
  FifoEntry *fifo;
  uint64_t step, lastCleaning;
  char netDevice[32];
};

struct Peer { // ncclDevChannelPeer
  Connection send[2], recv[2];
};

struct Tree { // ncclTree
  int depth, up, down[3];
};

struct Channel { // ncclDevChannel
  Peer **peers;
  int previous, next, *userRanks, *rankToIndex, index;
  alignas(8) Tree tree, chain;
  char collNetAndNvls[268];
  uint32_t *workFifoDone;
  uint64_t workCounter;
};

struct Communicator { // ncclKernelComm
  int rank, ranks, node, nodes, bufferSizes[3], p2pChunkSize;
  bool p2pCrossClique;
  int isAllNvlink, *denseToUserRank;
  volatile uint32_t *abortFlag;
  Channel *channels;
  int *localRanks;
  void *workStarted, *workCompleted;
};

struct Arguments { // ncclDevKernelArgs; the batches follow
  Communicator *communicator;
  uint64_t channelMask;
  uint8_t storage;
  uint32_t workMask;
  char *work;
};

struct Batch { // ncclDevWorkBatch
  uint32_t flags, offsetBase;
  uint64_t offsetBits;
};

struct CollectiveWork { // ncclDevWorkColl
  uint8_t channelLow, channelHigh, warps;
  uint8_t argumentIsPointer : 1, registered : 1, netRegistered : 1, otherFlags : 5;
  uint32_t root;
  uint8_t padding[16];
  char *recv, *send;
  uint64_t padding2, sendOffset, recvOffset, *sendRemote, *recvRemote;
  uint64_t countLow, countMiddle, countHigh, chunkGrains, argument, padding3;
};

struct P2pWork { // ncclDevWorkP2p
  char *send, *recv;
  uint64_t sendBytes, recvBytes;
  int sendRank, recvRank;
  uint8_t channels, channelBase, sendChannels, recvChannels, sendChunk, recvChunk;
  uint8_t sendLl : 1, recvLl : 1, registered : 4, otherFlags : 2;
};

struct BroadcastWork { // ncclDevWorkBcast
  int depth, chunk;
  char *send, *recv;
  int64_t bytes, done;
  char padding[8];
};

static_assert(sizeof(BroadcastWork) == 48, "layouts of 2.30.7");
static_assert(sizeof(Connection) == 152 && sizeof(Peer) == 608 && sizeof(Channel) == 368, "layouts of 2.30.7");
static_assert(sizeof(Communicator) == 88 && sizeof(Arguments) == 32, "layouts of 2.30.7");
static_assert(sizeof(CollectiveWork) == 128 && sizeof(P2pWork) == 48, "layouts of 2.30.7");
static_assert(offsetof(Channel, tree) == 40 && offsetof(Channel, workFifoDone) == 352, "layouts of 2.30.7");
static_assert(offsetof(CollectiveWork, recv) == 24 && offsetof(CollectiveWork, countLow) == 80, "layouts of 2.30.7");

// ---- NCCL's function table ----

struct Function {
  Collective collective;
  int algorithm, protocol, operation, type;
};

constexpr const char *COLLECTIVE_NAMES[] = {
    "SendRecv", "AllGather", "Broadcast", "AllGatherV", "AllReduce", "Reduce", "ReduceScatter"};
constexpr const char *PROTOCOL_NAMES[] = {"/LL", "/LL128", "/Simple"};

std::map<int, Function> &functions() {
  static auto *all = new std::map<int, Function>;
  return *all;
}

/** Lists the rows in the order of ncclDevFuncId. Several rows can have the same function. */
std::vector<Function> rows() {
  std::vector<int> ring = {RING}, gather = {RING, COLLNET_DIRECT, NVLS, PAT};
  std::vector<int> reduction = {TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE};
  std::vector<Function> all = {{SEND_RECV, 0, 0, 0, 0}};
  auto add = [&](Collective collective, const std::vector<int> &algorithms, int operation, int type) {
    for (int algorithm : algorithms)
      for (int protocol : {LL, LL128, SIMPLE}) all.push_back({collective, algorithm, protocol, operation, type});
  };
  add(ALL_GATHER, gather, 0, 0);
  add(BROADCAST, ring, 0, 0);
  add(ALL_GATHER_V, ring, 0, 0);
  auto addReductions = [&](Collective collective, const std::vector<int> &algorithms) {
    for (int operation = SUM; operation <= SUM_POST_DIV; operation++)
      for (int type = 0; type < 12; type++) add(collective, algorithms, operation, type);
  };
  addReductions(ALL_REDUCE, reduction);
  addReductions(REDUCE, ring);
  addReductions(REDUCE_SCATTER, gather);
  return all;
}

// ---- Access to memory that the proxy shares ----

/** Thrown in a kernel's thread when NCCL has set the abort flag. */
struct Aborted {};

template <class T> T acquire(const T *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
template <class T> void publish(T *at, T value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

template <class F> void await(const Communicator *communicator, F condition) {
  for (unsigned i = 1; !condition(); i++) {
    if (i % 64 != 0) continue;
    if (communicator->abortFlag != nullptr && *communicator->abortFlag != 0) throw Aborted();
    if (i < 4096) sched_yield();
    else usleep(20);
  }
}

/** Threads of a kernel. The destructor waits for their end. */
struct Threads : std::vector<std::jthread> {
  template <class F> void start(F function) {
    emplace_back([=] {
      try {
        function();
      } catch (const Aborted &) {
      }
    });
  }
};

// ---- Primitives ----

/** Data of one primitive. A null source or target is absent. */
struct Transfer {
  bool receive, send;
  const char *source;
  char *target;
  bool input = true;  /* The source is the user's input. The step before the reduction changes a copy. */
  bool final = false; /* The result is complete; the step after the reduction changes it. */
};

/** The connections of one block during one operation. */
class Primitives {
public:
  Primitives(const Communicator *communicator, const Channel *channel, const Function &function, uint64_t argument,
      int slices, int64_t stepBytes, const std::vector<int> &sources, const std::vector<int> &targets, int index)
      : communicator(communicator), function(function), argument(argument), protocol(function.protocol),
        slices(protocol == SIMPLE ? slices : 1), stepsPerSlice(this->slices),
        stepBytes(stepBytes != 0 ? stepBytes : communicator->bufferSizes[protocol] / STEPS) {
    for (int peer : sources)
      if (peer >= 0) from.push_back(channel->peers[peer]->recv + index);
    for (int peer : targets)
      if (peer >= 0) to.push_back(channel->peers[peer]->send + index);
    const char *algorithm = function.collective == SEND_RECV ? "" : function.algorithm == TREE ? "/Tree" : "/Ring";
    count(std::string(COLLECTIVE_NAMES[function.collective]) + algorithm + PROTOCOL_NAMES[protocol]);
    if (protocol != SIMPLE) return;
    int64_t steps = this->slices * stepsPerSlice;
    for (auto *side : {&from, &to})
      for (Connection *c : *side) c->step = (c->step + steps - 1) / steps * steps;
    for (Connection *c : from) publish(c->head, c->step); // returns the credits of skipped steps
  }

  bool receives() const { return !from.empty(); }
  bool sends() const { return !to.empty(); }

  /** Moves data of the given size in bytes. */
  void move(const Transfer &transfer, int64_t bytes) {
    bytes = std::max<int64_t>(bytes, 0);
    if (protocol == SIMPLE) moveSlices(transfer, bytes);
    else moveLines(transfer, bytes);
  }

private:
  char *slot(const Connection *c) const {
    int slot = c->step % STEPS;
    int mode = c->fifo == nullptr ? NORMAL_MODE : c->fifo[slot].mode;
    if (mode == OFFSET_MODE) {
      count("OFFSET");
      return c->buffers[SIMPLE] + c->fifo[slot].offset;
    }
    // NCCL defines a mode of pointers, but neither its host code nor its kernels use the mode.
    if (mode != NORMAL_MODE) unsupported("mode %d in ncclConnFifo", mode);
    return c->buffers[SIMPLE] + slot * (c->stepSize != 0 ? c->stepSize : stepBytes);
  }

  char *line(const Connection *c, int64_t number) const {
    return c->buffers[protocol] + c->step % STEPS * slotBytes() + number * lineBytes();
  }

  int64_t slotBytes() const { return communicator->bufferSizes[protocol] / STEPS; }
  int64_t lineBytes() const { return protocol == LL ? 16 : 128; }

  void apply(Phase phase, void *to, const void *from, size_t bytes) const {
    reduce(phase, function.operation, function.type, argument, to, from, bytes);
  }

  void awaitCredit(const Connection *c) const {
    await(communicator, [&] { return acquire(c->head) + STEPS >= c->step + stepsPerSlice; });
  }

  void moveSlices(const Transfer &t, int64_t bytes) {
    int64_t element = ELEMENT_BYTES[function.type], size = stepBytes * stepsPerSlice, count = bytes / element;
    size = std::max((count + 16 * slices - 1) / (16 * slices) * 16, size / element / 32) * element;
    for (int64_t slice = 0, done = 0; slice < slices; slice++) {
      int64_t part = std::max<int64_t>(0, std::min(size, bytes - done));
      if (t.receive)
        for (Connection *c : from)
          await(communicator, [&] { return acquire(c->tail) >= c->step + stepsPerSlice; });
      if (t.send)
        for (Connection *c : to) {
          awaitCredit(c);
          if (c->fifo != nullptr) c->fifo[c->step % STEPS].size = part;
        }
      if (part > 0) moveSlice(t, done, part);
      if (t.receive)
        for (Connection *c : from) publish(c->head, c->step += stepsPerSlice);
      if (t.send)
        for (Connection *c : to) publish(c->tail, c->step += stepsPerSlice);
      done += part;
    }
  }

  void moveSlice(const Transfer &t, int64_t offset, int64_t bytes) {
    buffer.resize(std::max<size_t>(buffer.size(), bytes));
    bool full = t.source != nullptr;
    if (full) {
      memcpy(buffer.data(), t.source + offset, bytes);
      if (t.input) apply(BEFORE, buffer.data(), nullptr, bytes);
    }
    if (t.receive)
      for (Connection *c : from) {
        if (full) apply(COMBINE, buffer.data(), slot(c), bytes);
        else memcpy(buffer.data(), slot(c), bytes);
        full = true;
      }
    if (t.final) apply(AFTER, buffer.data(), nullptr, bytes);
    if (t.target != nullptr) memcpy(t.target + offset, buffer.data(), bytes);
    if (t.send)
      for (Connection *c : to) memcpy(slot(c), buffer.data(), bytes);
  }

  /** NCCL cleans a whole slot before the 32-bit flags of LL repeat. */
  bool cleans(const Connection *c) const { return protocol == LL && (c->step & 0x7ffffff8) == 0x7ffffff8; }

  void moveLines(const Transfer &t, int64_t bytes) {
    int64_t data = protocol == LL ? 8 : 120, used = (bytes + data - 1) / data;
    // A warp writes 16 lines of LL128 at once.
    int64_t lines = protocol == LL ? used : (used + 15) / 16 * 16;
    if (t.send)
      for (Connection *c : to) {
        awaitCredit(c);
        if (c->fifo != nullptr) c->fifo[c->step % STEPS].size = cleans(c) ? slotBytes() : lines * lineBytes();
      }
    for (int64_t i = 0; i < lines; i++) {
      int64_t part = std::max<int64_t>(0, std::min(data, bytes - i * data));
      alignas(16) char value[128] = {}, other[128];
      bool full = t.source != nullptr;
      if (full && part > 0) {
        memcpy(value, t.source + i * data, part);
        if (t.input) apply(BEFORE, value, nullptr, data);
      }
      if (t.receive)
        for (Connection *c : from) {
          readLine(c, i, full ? other : value);
          if (full) apply(COMBINE, value, other, data);
          full = true;
        }
      if (t.final) apply(AFTER, value, nullptr, data);
      if (t.target != nullptr && part > 0) memcpy(t.target + i * data, value, part);
      if (t.send)
        for (Connection *c : to) writeLine(c, i, value);
    }
    if (t.send)
      for (Connection *c : to) {
        static const char zeros[128] = {};
        for (int64_t i = lines; cleans(c) && i < slotBytes() / lineBytes(); i++) writeLine(c, i, zeros);
        c->step++;
        if (protocol == LL128 && c->tail != nullptr) publish(c->tail, c->step);
      }
    if (t.receive)
      for (Connection *c : from) publish(c->head, ++c->step);
  }

  void readLine(const Connection *c, int64_t number, char *value) const {
    auto *words = reinterpret_cast<uint64_t *>(line(c, number));
    if (protocol == LL) {
      uint32_t flag = c->step + 1;
      uint64_t low, high;
      await(communicator, [&] {
        low = acquire(words);
        high = acquire(words + 1);
        return low >> 32 == flag && high >> 32 == flag;
      });
      uint64_t whole = (low & 0xffffffff) | high << 32;
      memcpy(value, &whole, sizeof whole);
    } else {
      await(communicator, [&] { return acquire(words + 15) == c->step + 1; });
      memcpy(value, words, 120);
    }
  }

  void writeLine(const Connection *c, int64_t number, const char *value) const {
    auto *words = reinterpret_cast<uint64_t *>(line(c, number));
    if (protocol == LL) {
      uint64_t whole, flag = uint64_t(uint32_t(c->step + 1)) << 32;
      memcpy(&whole, value, sizeof whole);
      publish(words, (whole & 0xffffffff) | flag);
      publish(words + 1, whole >> 32 | flag);
    } else {
      memcpy(words, value, 120);
      publish(words + 15, c->step + 1);
    }
  }

  const Communicator *communicator;
  const Function function;
  const uint64_t argument;
  const int protocol, slices, stepsPerSlice;
  const int64_t stepBytes;
  std::vector<Connection *> from, to;
  std::vector<char> buffer;
};

/** Reads an operator's argument from the user's memory. */
uint64_t argumentAt(uint64_t address, size_t bytes) {
  uint64_t argument = 0;
  memcpy(&argument, reinterpret_cast<const void *>(address), bytes);
  return argument;
}

// ---- Collectives ----

/** One collective on one channel. Counts and offsets are in elements. */
struct Operation {
  const Communicator *communicator;
  const Channel *channel;
  const CollectiveWork *work;
  Function function;
  int64_t element, offset, count, chunk, total;

  Operation(const Communicator *communicator, int number, Function function, const CollectiveWork *work)
      : communicator(communicator), channel(communicator->channels + number), work(work), function(function) {
    if (work->registered || work->netRegistered) unsupported("registered buffers");
    element = ELEMENT_BYTES[function.type];
    int64_t grain = function.protocol == LL ? 16 : function.protocol == LL128 ? 1920 : 512;
    int64_t middle = work->channelHigh - work->channelLow - 1;
    total = work->countLow + work->countMiddle * middle + work->countHigh;
    if (number == work->channelLow) take(0, work->countLow, 0);
    else if (number == work->channelHigh) take(work->countLow + middle * work->countMiddle, work->countHigh, 42);
    else take(work->countLow + (number - work->channelLow - 1) * work->countMiddle, work->countMiddle, 21);
    chunk *= grain / element;
  }

  void take(int64_t begin, int64_t size, int shift) {
    offset = begin;
    count = size;
    chunk = work->chunkGrains >> shift & 0x1fffff;
  }

  Primitives primitives(int slices, const std::vector<int> &sources, const std::vector<int> &targets) const {
    uint64_t argument = work->argumentIsPointer ? argumentAt(work->argument, element) : work->argument;
    return Primitives(communicator, channel, function, argument, slices, 0, sources, targets, 0);
  }

  void run() {
    if (function.algorithm == TREE && function.collective == ALL_REDUCE) return treeAllReduce();
    if (function.algorithm != RING) unsupported("algorithm %d of %s", function.algorithm, name());
    switch (function.collective) {
    case ALL_REDUCE: return ringAllReduce();
    case ALL_GATHER: return allGather();
    case REDUCE_SCATTER: return reduceScatter();
    case BROADCAST: return broadcast();
    case REDUCE: return reduceToRoot();
    default: unsupported("%s", name());
    }
  }

  const char *name() const { return COLLECTIVE_NAMES[function.collective]; }

  /** Calls the function for each chunk with its offset in the buffers and its size, both in bytes. */
  template <class F> void chunks(F function) const {
    for (int64_t done = 0; done < count; done += chunk)
      function((offset + done) * element, std::min(chunk, count - done) * element);
  }

  void treeAllReduce() const {
    const Tree &tree = channel->tree;
    std::vector<int> down(tree.down, tree.down + 3), up = {tree.up};
    bool root = tree.up < 0;
    Primitives reducing = primitives(1, down, up);
    chunks([&](int64_t at, int64_t bytes) {
      reducing.move({reducing.receives(), !root, work->send + at, root ? work->recv + at : nullptr, true, root}, bytes);
    });
    Primitives spreading = primitives(1, up, down);
    chunks([&](int64_t at, int64_t bytes) {
      char *result = work->recv + at;
      spreading.move({!root, spreading.sends(), root ? result : nullptr, root ? nullptr : result, false}, bytes);
    });
  }

  Primitives ring(int slices) const { return primitives(slices, {channel->previous}, {channel->next}); }

  void ringAllReduce() {
    int ranks = communicator->ranks;
    Primitives primitives = ring(2);
    for (int64_t done = 0, loop = ranks * chunk; done < count; done += loop) {
      int64_t rest = count - done, size = chunk;
      if (rest < loop) {
        int64_t alignment = 16 / element;
        size = ((rest + ranks - 1) / ranks + alignment - 1) / alignment * alignment;
      }
      auto part = [&](int distance, bool receive, bool send, bool source, bool target, bool final) {
        int64_t index = (channel->index + distance) % ranks, at = (offset + done + index * size) * element;
        Transfer transfer = {receive, send, source ? work->send + at : nullptr, target ? work->recv + at : nullptr};
        transfer.final = final;
        primitives.move(transfer, std::min(size, rest - index * size) * element);
      };
      part(ranks - 1, false, true, true, false, false);
      for (int i = 2; i < ranks; i++) part(ranks - i, true, true, true, false, false);
      part(0, true, true, true, true, true);
      for (int i = 1; i < ranks - 1; i++) part(ranks - i, true, true, false, true, false);
      part(1, true, false, false, true, false);
    }
  }

  void allGather() const {
    int ranks = communicator->ranks;
    Primitives primitives = ring(2);
    chunks([&](int64_t at, int64_t bytes) {
      auto target = [&](int i) { return work->recv + at + channel->userRanks[i] * total; };
      primitives.move({false, true, work->send + at, target(0), false}, bytes);
      for (int i = 1; i < ranks - 1; i++) primitives.move({true, true, nullptr, target(ranks - i)}, bytes);
      primitives.move({true, false, nullptr, target(1)}, bytes);
    });
  }

  void reduceScatter() const {
    int ranks = communicator->ranks;
    Primitives primitives = ring(2);
    chunks([&](int64_t at, int64_t bytes) {
      auto source = [&](int i) { return work->send + at + channel->userRanks[i] * total * element; };
      primitives.move({false, true, source(ranks - 1), nullptr}, bytes);
      for (int i = 2; i < ranks; i++) primitives.move({true, true, source(ranks - i), nullptr}, bytes);
      primitives.move({true, false, source(0), work->recv + at, true, true}, bytes);
    });
  }

  void broadcast() const {
    int root = work->root;
    Primitives primitives = ring(1);
    chunks([&](int64_t at, int64_t bytes) {
      if (communicator->rank == root) primitives.move({false, true, work->send + at, work->recv + at, false}, bytes);
      else primitives.move({true, channel->next != root, nullptr, work->recv + at}, bytes);
    });
  }

  void reduceToRoot() const {
    int root = work->root;
    Primitives primitives = ring(1);
    chunks([&](int64_t at, int64_t bytes) {
      const char *source = work->send + at;
      if (channel->previous == root) primitives.move({false, true, source, nullptr}, bytes);
      else if (communicator->rank != root) primitives.move({true, true, source, nullptr}, bytes);
      else primitives.move({true, false, source, work->recv + at, true, true}, bytes);
    });
  }
};

// ---- Send and receive ----

/** Decodes u32fp8: a mantissa of 3 bits with an exponent of 5 bits. */
uint32_t chunkSize(uint8_t code) {
  uint32_t exponent = code >> 3, mantissa = (code & 7) | (exponent != 0 ? 8 : 0);
  return mantissa << (exponent != 0 ? exponent - 1 : 0);
}

/** Moves this channel's part of a message. */
void moveMessage(const Communicator *communicator, int number, const P2pWork *work, bool send) {
  int parts = send ? work->sendChannels : work->recvChannels;
  int part = (number - work->channelBase) & (work->channels - 1);
  if (part >= parts) return;
  if (work->registered) unsupported("registered buffers");
  uint64_t bytes = send ? work->sendBytes : work->recvBytes;
  uint64_t size = ((bytes + parts - 1) / parts + 4095) & ~uint64_t(4095);
  uint64_t begin = std::min(part * size, bytes), end = std::min(begin + size, bytes);
  char *at = (send ? work->send : work->recv) + begin;
  bool ll = send ? work->sendLl : work->recvLl;
  int64_t chunk = chunkSize(send ? work->sendChunk : work->recvChunk), rest = end - begin;
  std::vector<int> peer = {send ? work->sendRank : work->recvRank}, none;
  Primitives primitives(communicator, communicator->channels + number, {SEND_RECV, 0, ll ? LL : SIMPLE, SUM, 1}, 0, 1,
      ll ? 0 : communicator->p2pChunkSize, send ? none : peer, send ? peer : none, 1);
  do { // An empty message has one step.
    int64_t bytes = std::min(chunk, rest);
    primitives.move({!send, send, send ? at : nullptr, send ? nullptr : at, false}, bytes);
    at += bytes;
    rest -= bytes;
  } while (rest > 0);
}

/** Runs the sends and receives of a batch at the same time, because each can depend on any other. */
void moveMessages(const Communicator *communicator, int number, const std::vector<const char *> &works) {
  Threads threads;
  for (const char *bytes : works) {
    auto *work = reinterpret_cast<const P2pWork *>(bytes);
    if (work->sendRank == communicator->rank) {
      if (((number - work->channelBase) & (work->channels - 1)) == 0) memmove(work->recv, work->send, work->sendBytes);
      continue;
    }
    for (bool send : {true, false}) threads.start([=] { moveMessage(communicator, number, work, send); });
  }
}

/** Runs broadcasts with different roots. The chunks of all broadcasts take turns in the same ring. */
void gatherPieces(const Communicator *communicator, int number, int protocol, const std::vector<const char *> &works) {
  std::vector<BroadcastWork> broadcasts;
  for (const char *work : works) broadcasts.push_back(*reinterpret_cast<const BroadcastWork *>(work));
  const Channel *channel = communicator->channels + number;
  Primitives primitives(communicator, channel, {ALL_GATHER_V, RING, protocol, SUM, 1}, 0, 1, 0, {channel->previous},
      {channel->next}, 0);
  for (bool more = true; more;) {
    more = false;
    for (BroadcastWork &work : broadcasts) {
      int64_t bytes = std::min<int64_t>(work.bytes - work.done, work.chunk);
      if (bytes > 0) {
        bool root = work.depth == 0, last = work.depth == communicator->ranks - 1;
        primitives.move({!root, !last, root ? work.send + work.done : nullptr, work.recv + work.done, false}, bytes);
      }
      work.done += bytes;
      more |= work.done < work.bytes;
    }
  }
}

// ---- One rank ----

/** Reads the type from the mangled name of a kernel, such as ...oneRankReduceI13FuncPreMulSumIfE... */
int typeOfName(const char *kernel) {
  constexpr const char *NAMES[] = {"aE", "hE", "iE", "jE", "lE", "mE", "6__half", "fE", "dE", "13__nv_bfloat16"};
  const char *begin = strstr(kernel, "PreMulSumI");
  for (int type = 0; begin != nullptr && type < 10; type++)
    if (strncmp(begin + strlen("PreMulSumI"), NAMES[type], strlen(NAMES[type])) == 0) return type;
  unsupported("kernel %s", kernel);
}

// ---- Counts ----

std::mutex countsLock;

std::map<std::string, long> &counts() {
  static auto *all = new std::map<std::string, long>;
  return *all;
}

/** Prints all counts in one line. A tree counts once for each of its two directions. */
__attribute__((destructor)) void printCounts() {
  std::lock_guard<std::mutex> guard(countsLock);
  std::string line = "kernels:";
  for (auto &[name, number] : counts()) line += " " + name + "=" + std::to_string(number);
  if (!counts().empty()) fputs((line + "\n").c_str(), stderr);
}

// ---- Blocks ----

/** Runs the batches of one channel. */
void runBlock(const Arguments *arguments, int block, int number) {
  constexpr int WORK_BYTES[] = {48, 128, 320, 48};
  auto *batch = reinterpret_cast<const Batch *>(arguments + 1) + block;
  Communicator *communicator = arguments->communicator;
  for (bool more = true; more;) {
    std::vector<const char *> works;
    uint32_t id;
    for (bool extended = true; extended;) {
      id = batch->flags >> 17;
      for (int i = 0; i < 64; i++) {
        if ((batch->offsetBits >> i & 1) == 0) continue;
        uint32_t offset = batch->offsetBase + i * WORK_BYTES[batch->flags >> 15 & 3];
        works.push_back(arguments->storage == 0 ? reinterpret_cast<const char *>(arguments) + offset
                                                : arguments->work + (offset & arguments->workMask));
      }
      int next = batch->flags & 0x3fff;
      extended = batch->flags >> 14 & 1;
      more = next != 0;
      batch += next;
    }
    auto found = functions().find(id);
    if (found == functions().end()) unsupported("function %u", id);
    Function function = found->second;
    if (function.collective == ALL_GATHER || function.collective == BROADCAST) function.type = 1; // bytes
    if (function.collective == SEND_RECV) moveMessages(communicator, number, works);
    else if (function.collective == ALL_GATHER_V) gatherPieces(communicator, number, function.protocol, works);
    else
      for (const char *work : works)
        Operation(communicator, number, function, reinterpret_cast<const CollectiveWork *>(work)).run();
    communicator->channels[number].workCounter += works.size();
  }
}

} // namespace

void count(const std::string &name) {
  std::lock_guard<std::mutex> guard(countsLock);
  counts()[name]++;
}

void setFunctionTable(const int *ids, size_t count) {
  std::vector<Function> all = rows();
  if (count < all.size()) unsupported("a function table of %zu rows, not %zu", count, all.size());
  for (size_t i = 0; i < all.size(); i++)
    if (ids[i] >= 0) functions().insert({ids[i], all[i]}); // The first of several rows stays.
}

/** A runner of launches in Java, which that runner sets. It returns 0 for a launch that this file has to run. */
__attribute__((visibility("default"))) int (*runInJava)(const void *block, size_t size);

/** Copies the numbers of a function's collective, algorithm, protocol, operator and type. */
API functionOf(int id, void *numbers) { return memcpy(numbers, &functions().at(id), sizeof(Function)) == nullptr; }

void runKernel(const char *kernel, const void *block, size_t size) {
  if (strstr(kernel, "ncclDevKernel") == nullptr) unsupported("kernel %s", kernel);
  if (runInJava != nullptr && runInJava(block, size)) return count("Java");
  auto *arguments = static_cast<const Arguments *>(block);
  Threads threads;
  for (int number = 0, blocks = 0; number < 64; number++)
    if (arguments->channelMask >> number & 1)
      threads.start([=, block = blocks++] { runBlock(arguments, block, number); });
}

void reduceOnOneRank(const char *kernel, char *target, const char *source, size_t elements, uint64_t argument,
                     bool argumentIsPointer) {
  count("OneRankReduce");
  int type = typeOfName(kernel);
  size_t bytes = elements * ELEMENT_BYTES[type];
  memmove(target, source, bytes);
  if (argumentIsPointer) argument = argumentAt(argument, ELEMENT_BYTES[type]);
  reduce(BEFORE, PRE_MUL_SUM, type, argument, target, nullptr, bytes);
}
