/*
 * One rank of a test of libnccl: runs operations and compares each element with the expected one.
 *
 * ranks ID_FILE RANK RANKS COUNTS TYPES OPERATORS [COLLECTIVE...]
 * ranks ID_FILE RANK RANKS random SEED ROUNDS
 * ranks ID_FILE RANK RANKS life SCENARIO
 *
 * COUNTS, TYPES and OPERATORS are lists of numbers with commas; types and operators are NCCL's, and operator 5 is a
 * sum of products. Without collectives all run. `random` draws collectives, groups, communicators, splits and graphs
 * from a seed, which is the same on all ranks. The scenarios of `life` are listed at the end of this file.
 *
 * A rank that makes no progress for HANG_SECONDS prints the stacks of its threads and exits with 3.
 */
extern "C" {
#include "cuda/device.h"
#include "cuda/graph.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "nccl/api.h"
}

#include "launch.h"

#include <execinfo.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int HANG_SECONDS = 90;
int rank, ranks;
size_t operations, elements, wrong;
std::string idFile, state = "start";
std::atomic<long> progress;

void check(int result, const char *call) {
  progress++;
  if (result == 0) return;
  fprintf(stderr, "rank %d: %s failed with %d in %s: %s\n", rank, call, result, state.c_str(),
      ncclGetLastError(nullptr));
  _exit(2);
}

#define CHECK(call) check(int(call), #call)

// ---- Hangs ----

void printStack(int) {
  void *frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
}

/** Prints the stacks of all threads one after the other. */
[[noreturn]] void reportHang() {
  fprintf(stderr, "rank %d: no progress for %d s in %s\n", rank, HANG_SECONDS, state.c_str());
  signal(SIGUSR1, printStack);
  for (auto &thread : std::filesystem::directory_iterator("/proc/self/task")) {
    fprintf(stderr, "rank %d, thread %s\n", rank, thread.path().filename().c_str());
    syscall(SYS_tgkill, getpid(), stoi(thread.path().filename().string()), SIGUSR1);
    usleep(20000);
  }
  sleep(1);
  _exit(3);
}

void watch() {
  for (long seen = -1, seconds = 0;; seconds++) {
    if (progress != seen) seconds = 0;
    seen = progress;
    if (seconds == HANG_SECONDS) reportHang();
    sleep(1);
  }
}

// ---- Values ----

enum Type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, E4M3, E5M2, TYPES };
constexpr size_t BYTES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
enum Operator { SUM, PROD, MAX, MIN, AVG, PRE_MUL, OPERATORS };

/** Encodes 0 or a positive number that is exact and normal in the format. */
uint64_t encode(double value, int exponentBits, int mantissaBits) {
  if (value == 0) return 0;
  int exponent;
  double fraction = frexp(value, &exponent);
  int bias = (1 << (exponentBits - 1)) - 1;
  return (uint64_t(exponent - 1 + bias) << mantissaBits) + uint64_t(ldexp(fraction * 2 - 1, mantissaBits));
}

uint64_t bitsOf(int type, double value) {
  constexpr int EXPONENT_BITS[] = {5, 8, 11, 8, 4, 5}, MANTISSA_BITS[] = {10, 23, 52, 7, 3, 2};
  if (type < FLOAT16) return uint64_t(value);
  return encode(value, EXPONENT_BITS[type - FLOAT16], MANTISSA_BITS[type - FLOAT16]);
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t value = (a * 0x9e3779b97f4a7c15 + b) * 0xbf58476d1ce4e5b9 + c;
  value = (value ^ value >> 31) * 0x94d049bb133111eb;
  return value ^ value >> 29;
}

// ---- Communicators and operations ----

/** A communicator of this rank. Ranks outside it have one without a handle, so that all draw the same numbers. */
struct Communicator {
  ncclComm_t handle = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<int> members; /* ranks of the process */
  int rank = -1;
  bool family = false; /* The parent's or the children's connections are also those of this communicator. */
  std::vector<ncclRedOp_t> operators;

  Communicator() = default;
  explicit Communicator(const std::vector<int> &members) : members(members) {
    auto found = std::find(members.begin(), members.end(), ::rank);
    if (found == members.end()) return;
    rank = found - members.begin();
    CHECK(cudaStreamCreateWithFlags(&stream, 1));
  }

  int size() const { return members.size(); }
  bool present() const { return rank >= 0; }

  void synchronize() {
    if (!present()) return;
    CHECK(cudaStreamSynchronize(stream));
    for (ncclRedOp_t operation : operators) CHECK(ncclRedOpDestroy(operation, handle));
    operators.clear();
  }

  void close(bool finalize) {
    if (!present()) return;
    synchronize();
    if (finalize) CHECK(ncclCommFinalize(handle));
    CHECK(ncclCommDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
  }
};

const std::vector<std::string> NAMES = {"allReduce", "reduceScatter", "reduce", "allGather", "broadcast", "sendRecv",
    "allToAll", "gather", "scatter", "allGatherV", "allToAllV"};
enum Collective { ALL_REDUCE, REDUCE_SCATTER, REDUCE, ALL_GATHER, BROADCAST, SEND_RECV, ALL_TO_ALL, GATHER, SCATTER,
  ALL_GATHER_V, ALL_TO_ALL_V };

/** A part of the result: elements that another rank's input has. */
struct Segment {
  size_t to;
  int source;
  size_t from, count;
};

/** One operation of this rank. The numbers are the same on all ranks of the communicator. */
struct Operation {
  Communicator *on;
  uint64_t id;
  int collective;
  size_t count;
  int type, operation, root;
  bool inPlace;
  size_t skew; /* unused elements before the buffers */
  char *memory[2] = {}, *from = nullptr, *to = nullptr;
  uint64_t *scalar = nullptr;
  std::vector<Segment> segments;
  const char *end = nullptr; /* of the result */
  static constexpr size_t GUARD = 64; /* unused bytes there */

  bool reduces() const { return collective <= REDUCE; }

  /** Number of elements of uneven collectives. */
  size_t part(int from, int to) const { return count == 0 ? 0 : mix(id, from, to) % (count + 1); }
  size_t partsBefore(int rank) const {
    size_t sum = 0;
    for (int r = 0; r < rank; r++) sum += part(r, 0);
    return sum;
  }

  /** A number that all types and sums of 8 ranks represent exactly. E5M2 has 3 significant bits. */
  double input(int rank, size_t index) const { return (mix(id, rank, index) >> 17 & 1) + (type == E5M2 ? 0 : 1); }
  double factor(int rank) const { return type >= E4M3 ? 2 : 1 + rank % 2; }

  double reduced(size_t index) const {
    double value = 0;
    for (int r = 0; r < on->size(); r++) {
      double other = input(r, index);
      if (operation == PRE_MUL) other *= factor(r);
      if (r == 0) value = other;
      else if (operation == PROD) value *= other;
      else if (operation == MAX) value = std::max(value, other);
      else if (operation == MIN) value = std::min(value, other);
      else value += other;
    }
    if (operation != AVG) return value;
    return type < FLOAT16 ? floor(value / on->size()) : value / on->size();
  }

  /** Calls the function with each index of a range, and the bits of the input of a rank there. */
  template <class F> void inputs(int rank, size_t begin, size_t count, F function) const {
    for (size_t i = 0; i < count; i++)
      function(i, reduces() ? bitsOf(type, input(rank, begin + i)) : mix(id, rank, begin + i));
  }

  void allocate() {
    size_t n = on->size(), me = on->rank, in = count, out = count;
    auto add = [&](size_t to, int source, size_t from, size_t count) { segments.push_back({to, source, from, count}); };
    size_t shift = 0; // of the second buffer within the first, in elements
    switch (collective) {
    case REDUCE_SCATTER: in = count * n, shift = me * count; break;
    case ALL_GATHER:
      out = count * n, shift = me * count;
      for (size_t r = 0; r < n; r++) add(r * count, r, 0, count);
      break;
    case BROADCAST: add(0, root, 0, count); break;
    case SEND_RECV: add(0, (me + n - root) % n, 0, count); break;
    case ALL_TO_ALL:
      in = out = count * n;
      for (size_t r = 0; r < n; r++) add(r * count, r, me * count, count);
      break;
    case GATHER:
      out = count * n;
      for (size_t r = 0; r < n && int(me) == root; r++) add(r * count, r, 0, count);
      break;
    case SCATTER: in = count * n, add(0, root, me * count, count); break;
    case ALL_GATHER_V:
      in = part(me, 0), out = partsBefore(n), shift = partsBefore(me);
      for (size_t r = 0; r < n; r++) add(partsBefore(r), r, 0, part(r, 0));
      break;
    case ALL_TO_ALL_V:
      in = out = count * n;
      for (size_t r = 0; r < n; r++) add(r * count, r, me * count, part(r, me));
    }
    inPlace &= collective <= BROADCAST || collective == ALL_GATHER_V;
    size_t bytes = BYTES[type], larger = std::max(in, out);
    for (int i = 0; i < (inPlace ? 1 : 2); i++) {
      size_t size = (skew + (inPlace ? larger : i == 0 ? in : out)) * bytes + GUARD;
      CHECK(cudaMalloc(reinterpret_cast<void **>(memory + i), size));
      memset(memory[i], 0x55, size);
    }
    from = memory[0] + skew * bytes;
    to = inPlace ? from : memory[1] + skew * bytes;
    if (inPlace) (in < out ? from : to) += shift * bytes;
    end = memory[inPlace ? 0 : 1] + (skew + (inPlace ? larger : out)) * bytes;
    inputs(me, 0, in, [&](size_t i, uint64_t bits) { memcpy(from + i * bytes, &bits, bytes); });
  }

  ncclRedOp_t operatorOf() {
    if (operation != PRE_MUL) return ncclRedOp_t(operation);
    bool onDevice = id % 2 == 0;
    CHECK(cudaMalloc(reinterpret_cast<void **>(&scalar), sizeof *scalar));
    *scalar = bitsOf(type, factor(on->rank));
    ncclRedOp_t created;
    CHECK(ncclRedOpCreatePreMulSum(&created, scalar, ncclDataType_t(type), ncclScalarResidence_t(onDevice ? 0 : 1),
        on->handle));
    on->operators.push_back(created);
    return created;
  }

  void start() {
    auto type = ncclDataType_t(this->type);
    ncclComm_t comm = on->handle;
    cudaStream_t stream = on->stream;
    int n = on->size(), me = on->rank;
    size_t bytes = BYTES[type];
    switch (collective) {
    case ALL_REDUCE: CHECK(ncclAllReduce(from, to, count, type, operatorOf(), comm, stream)); break;
    case REDUCE_SCATTER: CHECK(ncclReduceScatter(from, to, count, type, operatorOf(), comm, stream)); break;
    case REDUCE: CHECK(ncclReduce(from, to, count, type, operatorOf(), root, comm, stream)); break;
    case ALL_GATHER: CHECK(ncclAllGather(from, to, count, type, comm, stream)); break;
    case BROADCAST: CHECK(ncclBroadcast(from, to, count, type, root, comm, stream)); break;
    case ALL_TO_ALL: CHECK(ncclAlltoAll(from, to, count, type, comm, stream)); break;
    case GATHER: CHECK(ncclGather(from, to, count, type, root, comm, stream)); break;
    case SCATTER: CHECK(ncclScatter(from, to, count, type, root, comm, stream)); break;
    default:
      CHECK(ncclGroupStart());
      if (collective == SEND_RECV) {
        CHECK(ncclSend(from, count, type, (me + root) % n, comm, stream));
        CHECK(ncclRecv(to, count, type, (me + n - root) % n, comm, stream));
      }
      for (int r = 0; r < n && collective == ALL_GATHER_V; r++)
        CHECK(ncclBroadcast(from, to + partsBefore(r) * bytes, part(r, 0), type, r, comm, stream));
      for (int r = 0; r < n && collective == ALL_TO_ALL_V; r++) {
        CHECK(ncclSend(from + r * count * bytes, part(me, r), type, r, comm, stream));
        CHECK(ncclRecv(to + r * count * bytes, part(r, me), type, r, comm, stream));
      }
      CHECK(ncclGroupEnd());
    }
  }

  /** Compares the result and the bytes behind it. The operation has ended. */
  void compare() {
    size_t bytes = BYTES[type], bad = 0;
    auto compareOne = [&](size_t index, uint64_t bits) {
      elements++;
      if (memcmp(to + index * bytes, &bits, bytes) != 0 && bad++ == 0)
        printf("rank %d: %s of %zu elements of type %d, operator %d, root %d, %d ranks: element %zu is wrong in %s\n",
            ::rank, NAMES[collective].c_str(), count, type, operation, root, on->size(), index, state.c_str());
    };
    for (Segment &segment : segments)
      inputs(segment.source, segment.from, segment.count,
          [&](size_t i, uint64_t bits) { compareOne(segment.to + i, bits); });
    size_t begin = collective == REDUCE_SCATTER ? on->rank * count : 0;
    for (size_t i = 0; i < count && reduces() && (collective != REDUCE || on->rank == root); i++)
      compareOne(i, bitsOf(type, reduced(begin + i)));
    for (size_t i = 0; i < GUARD; i++)
      if (end[i] != 0x55 && bad++ == 0) printf("rank %d: bytes behind the result of %s changed in %s\n", ::rank,
          NAMES[collective].c_str(), state.c_str());
    operations++;
    wrong += bad;
  }

  /** Clears the result of an operation that is not in place. */
  void clear() { memset(memory[1], 0x55, end + GUARD - memory[1]); }

  void release() {
    for (char *buffer : memory)
      if (buffer != nullptr) CHECK(cudaFree(buffer));
    if (scalar != nullptr) CHECK(cudaFree(scalar));
  }
};

// ---- Creation of communicators ----

/** The first rank writes an ID to a file; the others wait for the file. */
ncclUniqueId shareId(bool first) {
  static int files;
  std::string path = idFile + std::to_string(files++);
  ncclUniqueId id;
  if (first) {
    CHECK(ncclGetUniqueId(&id));
    if (!std::ofstream(path + ".part").write(reinterpret_cast<char *>(&id), sizeof id)) exit(2);
    rename((path + ".part").c_str(), path.c_str());
    return id;
  }
  while (access(path.c_str(), F_OK) != 0) usleep(1000);
  if (!std::ifstream(path).read(reinterpret_cast<char *>(&id), sizeof id)) exit(2);
  return id;
}

std::vector<int> allRanks() {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/** Creates a communicator. A rank outside it reads the ID, too, so that the files have the same numbers. */
Communicator create(const std::vector<int> &members) {
  Communicator created(members);
  ncclUniqueId id = shareId(created.rank == 0);
  if (created.present()) CHECK(ncclCommInitRank(&created.handle, created.size(), id, created.rank));
  return created;
}

ncclConfig_t configuration(bool share) {
  constexpr int UNDEFINED = 0x80000000;
  return {sizeof(ncclConfig_t), MILLRACE_NCCL_CONFIG_MAGIC, 23007, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, nullptr,
      share, UNDEFINED, nullptr, UNDEFINED, UNDEFINED, share, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED,
      UNDEFINED, UNDEFINED};
}

Communicator shrink(Communicator &parent, std::vector<int> excluded, bool share, int flags) {
  std::vector<int> members;
  for (int r = 0; r < parent.size(); r++)
    if (std::find(excluded.begin(), excluded.end(), r) == excluded.end()) members.push_back(parent.members[r]);
  Communicator created(members);
  ncclConfig_t config = configuration(share);
  created.family = share || parent.family;
  if (created.present())
    CHECK(ncclCommShrink(parent.handle, excluded.data(), excluded.size(), &created.handle, &config, flags));
  return created;
}

// ---- Random operations ----

/** Numbers below a limit in random order. Each one occurs once before one occurs again. */
struct Cycle {
  const size_t limit;
  std::vector<int> rest = {};

  int next(std::mt19937_64 &random) {
    for (size_t i = rest.empty() ? limit : 0; i > 0; i--) rest.push_back(i - 1);
    std::swap(rest[random() % rest.size()], rest.back());
    int number = rest.back();
    rest.pop_back();
    return number;
  }
};

/** 25 rounds have each kind of round, each collective and each type. */
class RandomRun {
public:
  explicit RandomRun(uint64_t seed) : seed(seed), random(seed) { communicators.push_back(create(allRanks())); }

  void run(int rounds) {
    for (int round = 0; round < rounds; round++) {
      state = "round " + std::to_string(round) + " of seed " + std::to_string(seed);
      int kind = kinds.next(random);
      if (kind < 18) group();
      else if (kind < 21) captured();
      else if (kind == 21) split();
      else if (kind == 22) shrinkOne();
      else if (kind == 23) addOne();
      else destroy();
      if (draw(3) == 0) finish();
    }
    finish();
    state = "the end of seed " + std::to_string(seed);
    while (!communicators.empty()) remove(draw(communicators.size()));
  }

private:
  size_t draw(size_t bound) { return random() % bound; }
  Communicator &any() { return *std::next(communicators.begin(), draw(communicators.size())); }

  /** Adds an operation with its memory. Small counts are as frequent as large ones. */
  Operation &drawn(Communicator &on, bool inPlace) {
    Operation o = {&on, random()};
    o.collective = collectives.next(random);
    size_t limit = size_t(1) << draw(18), n = on.size();
    o.count = draw(limit + 1) / (o.collective == ALL_REDUCE || o.collective == SEND_RECV ? 1 : n);
    o.type = types.next(random);
    o.operation = draw(OPERATORS);
    o.root = draw(n);
    o.inPlace = draw(2) && inPlace;
    o.skew = draw(4);
    // A quotient of other numbers of ranks is not exact.
    if (o.operation == AVG && o.type >= FLOAT16 && (n & (n - 1)) != 0) o.operation = SUM;
    // NCCL has no kernel for 8-bit floating-point numbers on one rank.
    if ((o.operation == AVG || o.operation == PRE_MUL) && o.type >= E4M3 && n == 1) o.operation = SUM;
    if (!o.reduces()) o.operation = SUM;
    if (!on.present()) return absent = o;
    ::count(NAMES[o.collective]);
    ::count("type" + std::to_string(o.type));
    pending.push_back(o);
    pending.back().allocate();
    return pending.back();
  }

  void group() {
    CHECK(ncclGroupStart());
    Communicator *on = &any();
    for (int i = draw(5); i >= 0; i--) {
      Operation &operation = drawn(*on, true);
      if (on->present()) operation.start();
      Communicator &other = any();
      // NCCL orders the kernels of a family, and the order in a group can differ between ranks.
      if (draw(4) == 0 && !on->family && !other.family) on = &other;
    }
    CHECK(ncclGroupEnd());
  }

  /** Compares the results of a launch of a graph, and clears them before the next launch. */
  static void compareLaunch(void *operations) {
    for (Operation *operation : *static_cast<std::vector<Operation *> *>(operations)) {
      operation->compare();
      operation->clear();
    }
  }

  /** Runs a group as a graph, which is launched several times without a wait. */
  void captured() {
    Communicator &on = any();
    std::vector<Operation *> operations;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    if (on.present()) CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal));
    CHECK(ncclGroupStart());
    for (int i = draw(3); i >= 0; i--) {
      operations.push_back(&drawn(on, false));
      if (on.present()) operations.back()->start();
    }
    CHECK(ncclGroupEnd());
    int launches = draw(4);
    if (on.present()) {
      CHECK(cudaStreamEndCapture(on.stream, &graph));
      ::count("graph");
      CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
      CHECK(cudaGraphDestroy(graph));
      for (int i = 0; i < launches; i++) {
        CHECK(cudaGraphLaunch(executable, on.stream));
        CHECK(cudaLaunchHostFunc(on.stream, compareLaunch, &operations));
      }
      CHECK(cudaGraphLaunch(executable, on.stream));
    }
    finish();
    if (on.present()) CHECK(cudaGraphExecDestroy(executable));
  }

  void finish() {
    for (Communicator &communicator : communicators) communicator.synchronize();
    for (Operation &operation : pending) {
      operation.compare();
      operation.release();
    }
    pending.clear();
  }

  void split() {
    Communicator &parent = any();
    bool share = draw(2) && !parent.family;
    std::vector<int> colors, keys;
    for (int r = 0; r < parent.size(); r++) {
      colors.push_back(int(draw(5) + 1) / 2 - 1);
      keys.push_back(draw(4));
    }
    ncclComm_t handle = nullptr;
    if (parent.present()) {
      ncclConfig_t config = configuration(share);
      CHECK(ncclCommSplit(parent.handle, colors[parent.rank], keys[parent.rank], &handle, &config));
      ::count("split");
    }
    for (int color = 0; color < 2; color++) {
      std::vector<std::pair<int, int>> chosen;
      for (size_t r = 0; r < colors.size(); r++)
        if (colors[r] == color) chosen.emplace_back(keys[r], r);
      std::sort(chosen.begin(), chosen.end());
      std::vector<int> members;
      for (auto [key, r] : chosen) members.push_back(parent.members[r]);
      if (members.empty()) continue;
      communicators.emplace_back(members);
      communicators.back().family = share || parent.family;
      if (communicators.back().present()) communicators.back().handle = handle;
    }
    limit();
  }

  void shrinkOne() {
    finish();
    Communicator *drawn = &any(), &parent = drawn->size() > 1 ? *drawn : communicators.front();
    if (parent.present()) ::count("shrink");
    communicators.push_back(shrink(parent, {int(draw(parent.size()))}, draw(2) && !parent.family, 0));
    limit();
  }

  void addOne() {
    std::vector<int> members = allRanks();
    std::shuffle(members.begin(), members.end(), random);
    members.resize(1 + draw(ranks));
    communicators.push_back(create(members));
    limit();
  }

  void destroy() {
    if (communicators.size() > 1) remove(1 + draw(communicators.size() - 1));
  }

  void limit() {
    while (communicators.size() > 5) destroy();
  }

  void remove(size_t index) {
    finish();
    auto chosen = std::next(communicators.begin(), index);
    chosen->close(draw(2));
    communicators.erase(chosen);
  }

  const uint64_t seed;
  std::mt19937_64 random;
  Cycle kinds{25}, collectives{NAMES.size()}, types{TYPES};
  std::list<Communicator> communicators;
  std::list<Operation> pending;
  Operation absent;
};

// ---- Lists of operations ----

std::vector<size_t> numbers(const char *list, size_t limit) {
  std::vector<size_t> all;
  for (char *end;; list = end + 1) {
    all.push_back(strtoull(list, &end, 10));
    if (*list < '0' || *list > '9' || (*end != 0 && *end != ',') || all.back() >= limit)
      unsupported("argument %s: give numbers from 0 to %zu", list, limit - 1);
    if (*end == 0) return all;
  }
}

/** Waits until all ranks are here. */
void meet() {
  static int meetings;
  std::string prefix = idFile + ".meeting" + std::to_string(meetings++) + ".";
  fclose(fopen((prefix + std::to_string(rank)).c_str(), "w"));
  for (int r = 0; r < ranks; r++)
    while (access((prefix + std::to_string(r)).c_str(), F_OK) != 0) usleep(1000);
}

/** Runs an operation. If it is early, its root can fill all slots before the other ranks start. */
void run(Communicator &on, int collective, size_t count, int type, int operation, bool early = false) {
  Operation o = {&on, operations + 1, collective, count, type, operation, int(operations % on.size()), false, 0};
  o.allocate();
  if (early && on.rank != o.root) meet();
  o.start();
  if (early && on.rank == o.root) meet();
  on.synchronize();
  o.compare();
  o.release();
}

void runAll(Communicator &on, char **counts, const std::vector<std::string> &names) {
  auto operators = numbers(counts[2], OPERATORS);
  for (const std::string &name : names) {
    int collective = std::find(NAMES.begin(), NAMES.end(), name) - NAMES.begin();
    if (collective == int(NAMES.size())) unsupported("unknown collective %s", name.c_str());
    for (size_t count : numbers(counts[0], SIZE_MAX))
      for (size_t type : numbers(counts[1], TYPES))
        for (size_t operation : collective <= REDUCE ? operators : std::vector<size_t>{0})
          run(on, collective, count, type, operation);
  }
}

// ---- Life of communicators ----

void startAllReduce(std::list<Operation> &started, Communicator &on, int accepted = ncclSuccess) {
  started.push_back({&on, operations + started.size(), ALL_REDUCE, 300001, FLOAT32, SUM, 0, false, 0});
  Operation &o = started.back();
  o.allocate();
  int result = ncclAllReduce(o.from, o.to, o.count, ncclFloat32, ncclSum, on.handle, on.stream);
  if (result != accepted) CHECK(result);
}

/** Runs each collective, and ends the communicator. */
void useAndClose(Communicator on) {
  for (size_t collective = 0; collective < NAMES.size(); collective++) run(on, collective, 30001, FLOAT32, SUM);
  run(on, BROADCAST, 300001, FLOAT32, SUM, true);
  on.close(true);
}

/**
 * Aborts while all-reduces run, of which one rank has started only some. The all-reduces that were complete before have
 * right results. Then the ranks use a new communicator.
 */
void abortInFlight() {
  for (int cycle = 0; cycle < 3; cycle++) {
    Communicator on = create(allRanks());
    run(on, ALL_REDUCE, 1000, FLOAT32, SUM);
    std::list<Operation> started;
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, 0));
    for (int i = 0; i < (rank == cycle % ranks ? 3 : 6); i++) {
      startAllReduce(started, on);
      if (i == cycle) CHECK(cudaEventRecord(event, on.stream));
    }
    while (cudaEventQuery(event) != 0) sched_yield();
    meet();
    CHECK(ncclCommAbort(on.handle));
    CHECK(cudaStreamDestroy(on.stream));
    CHECK(cudaEventDestroy(event));
    int complete = cycle + 1;
    for (Operation &operation : started) {
      if (complete-- > 0) operation.compare();
      operation.release();
    }
  }
  useAndClose(create(allRanks()));
}

/**
 * The last rank is killed among operations. The others start more operations, which the plugin may refuse, and which do
 * not complete. Under the takeover they shrink the communicator and use the rest; otherwise they create a new one.
 */
void killOne() {
  Communicator on = create(allRanks());
  run(on, ALL_REDUCE, 1000, FLOAT32, SUM);
  bool killed = rank == ranks - 1;
  std::list<Operation> started;
  for (int i = 0; i < 4; i++) {
    startAllReduce(started, on);
    if (i == (killed ? 0 : 3)) meet();
    if (i == 2 && killed) kill(getpid(), SIGKILL);
  }
  startAllReduce(started, on, ncclRemoteError);
  ncclResult_t error = ncclSuccess;
  while (ncclCommGetAsyncError(on.handle, &error) == ncclSuccess && error == ncclSuccess) sched_yield();
  CHECK(error != ncclRemoteError);
  startAllReduce(started, on, ncclRemoteError);
  CHECK(cudaStreamQuery(on.stream) == 0);
  ranks--;
  bool shrinks = std::string(getenv("MILLRACE_TAKEOVER") ?: "") == "1"; // NCCL's own proxy cannot shrink now.
  if (shrinks) useAndClose(shrink(on, {ranks}, false, 1));
  CHECK(ncclCommAbort(on.handle));
  if (!shrinks) useAndClose(create(allRanks()));
}

/** Ends three communicators in each order; the ranks have different orders. */
void endInEveryOrder() {
  int order[] = {0, 1, 2}, cycle = 0;
  do {
    std::vector<Communicator> all(3);
    all[0] = create(allRanks());
    all[1] = Communicator(allRanks());
    ncclConfig_t config = configuration(cycle % 2);
    CHECK(ncclCommSplit(all[0].handle, 0, -rank, &all[1].handle, &config));
    all[1].rank = ranks - 1 - rank;
    all[2] = create(allRanks());
    for (int i = 0; i < 9; i++) run(all[i % 3], (cycle + i) % 11, 5001, FLOAT32, SUM);
    for (int i : order) all[(i + rank) % 3].close(cycle % 3 != 0);
    cycle++;
  } while (std::next_permutation(order, order + 3));
}

} // namespace

int main(int count, char **arguments) {
  if (count < 6 || (count < 7 && arguments[4] != std::string("life")))
    return fprintf(stderr, "give COUNTS TYPES OPERATORS, random SEED ROUNDS, or life SCENARIO\n"), 2;
  setlinebuf(stdout); // The ranks write to one file.
  idFile = arguments[1], rank = atoi(arguments[2]), ranks = atoi(arguments[3]);
  std::thread(watch).detach();
  CHECK(cudaSetDevice(rank));
  std::string mode = arguments[4], scenario = arguments[5];
  if (mode == "random") {
    RandomRun(stoull(scenario)).run(atoi(arguments[6]));
  } else if (mode == "life") {
    state = scenario;
    if (scenario == "abort") abortInFlight();
    else if (scenario == "kill") killOne();
    else if (scenario == "order") endInEveryOrder();
    else return fprintf(stderr, "life SCENARIO: give abort, kill or order instead of %s\n", scenario.c_str()), 2;
  } else {
    std::vector<std::string> names(arguments + 7, arguments + count);
    Communicator all = create(allRanks());
    runAll(all, arguments + 4, names.empty() ? NAMES : names);
    all.close(false);
  }
  printf("rank %d: %zu operations, %zu elements, %zu wrong\n", rank, operations, elements, wrong);
  return wrong != 0;
}
