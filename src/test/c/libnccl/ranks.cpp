/*
 * One rank of a test of libnccl: runs operations and compares each element with the expected one.
 *
 * ranks ID_FILE RANK RANKS COUNTS TYPES OPERATORS [COLLECTIVE...]
 *
 * COUNTS, TYPES and OPERATORS are lists of numbers with commas; types and operators are NCCL's. Without collectives all
 * run. The values are 1 and 2, so that all types have exact results with 2 or 4 ranks.
 */
extern "C" {
#include "nccl/api.h"

int cudaSetDevice(int device);
int cudaMalloc(void **pointer, size_t size);
int cudaFree(void *pointer);
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamSynchronize(void *stream);
int cudaStreamDestroy(void *stream);
}

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace {

int rank, ranks;
ncclComm_t communicator;
cudaStream_t stream;
size_t operations, elements, wrong;

void check(int result, const char *call) {
  if (result == 0) return;
  fprintf(stderr, "rank %d: %s failed with %d: %s\n", rank, call, result, ncclGetLastError(nullptr));
  _exit(2);
}

#define CHECK(call) check(int(call), #call)

enum Type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, E4M3, E5M2 };
constexpr size_t BYTES[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
enum Operator { SUM, PROD, MAX, MIN, AVG };

/** Encodes 0 or a positive number that is exact and normal in the format. */
uint64_t encode(double value, int exponentBits, int mantissaBits) {
  if (value == 0) return 0;
  int exponent;
  double fraction = frexp(value, &exponent);
  int bias = (1 << (exponentBits - 1)) - 1;
  return (uint64_t(exponent - 1 + bias) << mantissaBits) + uint64_t(ldexp(fraction * 2 - 1, mantissaBits));
}

void store(std::vector<char> &data, size_t index, int type, double value) {
  uint64_t bits = uint64_t(value);
  if (type == FLOAT16) bits = encode(value, 5, 10);
  if (type == FLOAT32) bits = encode(value, 8, 23);
  if (type == FLOAT64) bits = encode(value, 11, 52);
  if (type == BFLOAT16) bits = encode(value, 8, 7);
  if (type == E4M3) bits = encode(value, 4, 3);
  if (type == E5M2) bits = encode(value, 5, 2);
  memcpy(data.data() + index * BYTES[type], &bits, BYTES[type]);
}

/** The input of a rank. The values do not repeat in the same way in any two ranks. */
double input(int of, size_t index) { return 1 + ((index * (2 * of + 1) + index / 7 + of + operations) >> of & 1); }

double reduced(int operation, int type, size_t index) {
  double value = input(0, index);
  for (int r = 1; r < ranks; r++) {
    double other = input(r, index);
    if (operation == PROD) value *= other;
    else if (operation == MAX) value = std::max(value, other);
    else if (operation == MIN) value = std::min(value, other);
    else value += other;
  }
  if (operation != AVG) return value;
  return type < FLOAT16 ? floor(value / ranks) : value / ranks;
}

template <class F> std::vector<char> values(int type, size_t count, F value) {
  std::vector<char> data(count * BYTES[type]);
  for (size_t i = 0; i < count; i++) store(data, i, type, value(i));
  return data;
}

/** Runs one collective and compares its result. The count is that of one rank. */
void run(const std::string &collective, size_t count, int type, int operation) {
  size_t bytes = BYTES[type], inputs = count, outputs = count;
  if (collective == "allGather") outputs = count * ranks;
  if (collective == "reduceScatter" || collective == "allToAll") inputs = count * ranks;
  if (collective == "allToAll") outputs = count * ranks;
  std::vector<char> source = values(type, inputs, [&](size_t i) { return input(rank, i); });
  void *from, *to;
  CHECK(cudaMalloc(&from, inputs * bytes));
  CHECK(cudaMalloc(&to, outputs * bytes));
  memcpy(from, source.data(), source.size());
  memset(to, 0x55, outputs * bytes);
  auto dataType = ncclDataType_t(type);
  auto op = ncclRedOp_t(operation);
  std::vector<char> expected;
  int root = operations % ranks, next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  if (collective == "allReduce") {
    CHECK(ncclAllReduce(from, to, count, dataType, op, communicator, stream));
    expected = values(type, outputs, [&](size_t i) { return reduced(operation, type, i); });
  } else if (collective == "allGather") {
    CHECK(ncclAllGather(from, to, count, dataType, communicator, stream));
    expected = values(type, outputs, [&](size_t i) { return input(i / count, i % count); });
  } else if (collective == "reduceScatter") {
    CHECK(ncclReduceScatter(from, to, count, dataType, op, communicator, stream));
    expected = values(type, outputs, [&](size_t i) { return reduced(operation, type, rank * count + i); });
  } else if (collective == "broadcast") {
    CHECK(ncclBroadcast(from, to, count, dataType, root, communicator, stream));
    expected = values(type, outputs, [&](size_t i) { return input(root, i); });
  } else if (collective == "reduce") {
    CHECK(ncclReduce(from, to, count, dataType, op, root, communicator, stream));
    if (rank == root) expected = values(type, outputs, [&](size_t i) { return reduced(operation, type, i); });
  } else if (collective == "sendRecv") {
    CHECK(ncclGroupStart());
    CHECK(ncclSend(from, count, dataType, next, communicator, stream));
    CHECK(ncclRecv(to, count, dataType, previous, communicator, stream));
    CHECK(ncclGroupEnd());
    expected = values(type, outputs, [&](size_t i) { return input(previous, i); });
  } else if (collective == "allToAll") {
    CHECK(ncclGroupStart());
    for (int r = 0; r < ranks; r++) {
      size_t offset = r * count * bytes;
      CHECK(ncclSend(static_cast<char *>(from) + offset, count, dataType, r, communicator, stream));
      CHECK(ncclRecv(static_cast<char *>(to) + offset, count, dataType, r, communicator, stream));
    }
    CHECK(ncclGroupEnd());
    expected = values(type, outputs, [&](size_t i) { return input(i / count, rank * count + i % count); });
  } else {
    fprintf(stderr, "unknown collective %s\n", collective.c_str());
    exit(2);
  }
  CHECK(cudaStreamSynchronize(stream));
  size_t bad = 0;
  for (size_t i = 0; i < expected.size() / bytes; i++)
    if (memcmp(static_cast<char *>(to) + i * bytes, expected.data() + i * bytes, bytes) != 0 && bad++ == 0)
      printf("rank %d: %s, %zu elements of type %d, operator %d: element %zu is wrong\n", rank, collective.c_str(),
          count, type, operation, i);
  operations++;
  elements += expected.size() / bytes;
  wrong += bad;
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
}

/** Rank 0 writes the id to the file; the others wait for the file. */
ncclUniqueId shareId(const std::string &path) {
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    FILE *file = fopen((path + ".part").c_str(), "w");
    if (file == nullptr || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) != 0) exit(2);
    rename((path + ".part").c_str(), path.c_str());
    return id;
  }
  FILE *file;
  while ((file = fopen(path.c_str(), "r")) == nullptr) usleep(10000);
  if (fread(&id, sizeof id, 1, file) != 1) exit(2);
  fclose(file);
  return id;
}

std::vector<size_t> numbers(const char *list) {
  std::vector<size_t> all;
  std::stringstream text(list);
  for (std::string part; std::getline(text, part, ',');) all.push_back(std::stoul(part));
  return all;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

} // namespace

int main(int count, char **arguments) {
  if (count < 7) return 2;
  rank = atoi(arguments[2]);
  ranks = atoi(arguments[3]);
  std::vector<std::string> collectives(arguments + 7, arguments + count);
  if (collectives.empty())
    collectives = {"allReduce", "allGather", "reduceScatter", "broadcast", "reduce", "sendRecv", "allToAll"};
  CHECK(cudaSetDevice(rank));
  CHECK(cudaStreamCreateWithFlags(reinterpret_cast<void **>(&stream), 1));
  double start = now();
  CHECK(ncclCommInitRank(&communicator, ranks, shareId(arguments[1]), rank));
  printf("rank %d: ncclCommInitRank took %.1f s\n", rank, now() - start);
  fflush(stdout);
  for (const std::string &collective : collectives) {
    bool reduces = collective.find("educe") != std::string::npos;
    for (size_t elements : numbers(arguments[4]))
      for (size_t type : numbers(arguments[5]))
        for (size_t operation : numbers(reduces ? arguments[6] : "0")) run(collective, elements, type, operation);
  }
  CHECK(ncclCommDestroy(communicator));
  CHECK(cudaStreamDestroy(stream));
  printf("rank %d: %zu operations, %zu elements, %zu wrong\n", rank, operations, elements, wrong);
  return wrong != 0;
}
