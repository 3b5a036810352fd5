/*
 * Parts that the checks and measurements of nccl_gin.cu share: windows, their content, and its comparison. The windows
 * are:
 *
 * - in: a slot for each rank, with the bytes that are put to the rank or that the rank gets.
 * - out: a slot for each rank, with the bytes that arrived from the rank, between margins that must stay unchanged.
 * - words: signals that are in a window.
 */
#pragma once
#include "gin_rank.h"

#define CONTEXTS 4
#define COUNTERS 4
/* Signals of each context, one for each check, because no signal may be both incremented and added to. */
enum { BYTES_PUT = 1, VALUES_PUT, PING_PONG, SIGNALLED_ON, WRAPPED, FLOODED, SETTLED, BURST, SIGNALS = 16 };
/* Bytes before and after the destination of a put, which must stay unchanged. */
#define MARGIN 256
#define UNTOUCHED 0x5a
/* Number of result words of a kernel, on the device. The first word counts wrong bytes. */
#define FINDINGS 16
#define WORDS_OF_RANK 64

struct Setting {
  ncclDevComm devComm;
  int contexts;
  size_t max, slot, all, wordsBytes; /* maximum bytes of one transfer; bytes of a rank's slot, of in and out, and of words */
  uint8_t *in, *out, *host;
  uint64_t *words;
  ncclWindow_t inWindow, outWindow, wordsWindow;
  uint64_t *found; /* FINDINGS words on the device */
  int iterations;
};

__host__ __device__ inline uint8_t pattern(int from, int to, int round, size_t i) { return (uint8_t)(i * 31 + i / 251 + from * 7 + to * 13 + round * 17); }

static const size_t SIZES[] = {0, 1, 3, 8, 100, 4096, 65541, 262144, 1048579, 16777223, 67108864};
#define SIZES_COUNT (sizeof SIZES / sizeof *SIZES)

static size_t fromOffsetOf(int round) { return (round * 29 + 1) % MARGIN; }
static size_t toOffsetOf(int round) { return (round * 53 + 13) % MARGIN; }

static void everybody(const Setting &s) { barrier<<<1, 32, 0, stream>>>(s.devComm); }

/*
 * Fills `in` with the bytes of a round, and `out` with the untouched pattern. The caller ensures that no rank reads or
 * writes one of the windows.
 */
static void fill(const Setting &s, int round, size_t fromOffset, size_t bytes) {
  for (int peer = 0; peer < ranks; peer++)
    for (size_t i = 0; i < bytes; i++)
      s.host[peer * s.slot + fromOffset + i] = pattern(rank, peer, round, i);
  size_t width = bytes + 2 * MARGIN; /* bytes of every slot that the check reads */
  CUDA(cudaMemcpy2D(s.in, s.slot, s.host, s.slot, width, ranks, cudaMemcpyHostToDevice));
  CUDA(cudaMemset2D(s.out, s.slot, UNTOUCHED, width, ranks));
  CUDA(cudaMemset(s.found, 0, FINDINGS * sizeof *s.found));
  CUDA(cudaDeviceSynchronize()); /* The stream does not wait for the default stream, which ran these operations. */
}

/* Copies the beginning of every slot of `out`, and the margins around the bytes, to the host. */
static void readOut(const Setting &s, size_t bytes) {
  CUDA(cudaMemcpy2D(s.host, s.slot, s.out, s.slot, bytes + 2 * MARGIN, ranks, cudaMemcpyDeviceToHost));
}

/* Returns the number of bytes of `out`, margins included, that differ from the expected bytes of a round. */
static size_t wrongBytes(const Setting &s, int round, size_t toOffset, size_t bytes) {
  size_t bad = 0;
  readOut(s, bytes);
  for (int peer = 0; peer < ranks; peer++)
    for (size_t i = 0; i < bytes + 2 * MARGIN; i++) {
      bool brought = i >= toOffset && i < toOffset + bytes;
      bad += s.host[peer * s.slot + i] != (brought ? pattern(peer, rank, round, i - toOffset) : UNTOUCHED);
    }
  return bad;
}

/*
 * One block: counts the bytes at an address that differ from a rank's bytes, as this kernel sees them. After the thread
 * that waited for the bytes, the block must have passed a barrier.
 */
__device__ inline void compare(const uint8_t *at, int from, int to, int round, size_t bytes, uint64_t *wrong) {
  unsigned long long bad = 0;
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x)
    bad += at[i] != pattern(from, to, round, i);
  if (bad)
    atomicAdd((unsigned long long *)wrong, bad);
}

static void readFindings(const Setting &s, uint64_t *found) { CUDA(cudaMemcpy(found, s.found, FINDINGS * sizeof *found, cudaMemcpyDeviceToHost)); }

static void *newWindow(size_t bytes, ncclWindow_t *window) {
  void *memory;
  NCCL(ncclMemAlloc(&memory, bytes));
  NCCL(ncclCommWindowRegister(comm, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
  return memory;
}

static Setting newSetting(size_t max, size_t leastSlot, int iterations) {
  Setting s;
  s.max = max;
  s.iterations = iterations;
  s.slot = ((max > leastSlot ? max : leastSlot) + 2 * MARGIN + 4095) / 4096 * 4096;
  s.all = s.slot * ranks;
  s.host = (uint8_t *)calloc(s.all, 1);
  if (!s.host) {
    perror("memory for a window's copy");
    exit(4);
  }
  s.wordsBytes = (ranks * WORDS_OF_RANK * sizeof *s.words + 4095) / 4096 * 4096;
  s.in = (uint8_t *)newWindow(s.all, &s.inWindow);
  s.out = (uint8_t *)newWindow(s.all, &s.outWindow);
  s.words = (uint64_t *)newWindow(s.wordsBytes, &s.wordsWindow);
  CUDA(cudaMalloc((void **)&s.found, FINDINGS * sizeof *s.found));
  s.devComm = newDeviceCommunicator(CONTEXTS, SIGNALS, COUNTERS);
  s.contexts = (int)s.devComm.ginContextCount < CONTEXTS ? (int)s.devComm.ginContextCount : CONTEXTS; /* The requested number of contexts is a hint. */
  return s;
}

static void release(Setting &s) {
  NCCL(ncclDevCommDestroy(comm, &s.devComm));
  NCCL(ncclCommWindowDeregister(comm, s.inWindow));
  NCCL(ncclCommWindowDeregister(comm, s.outWindow));
  NCCL(ncclCommWindowDeregister(comm, s.wordsWindow));
  NCCL(ncclMemFree(s.in));
  NCCL(ncclMemFree(s.out));
  NCCL(ncclMemFree(s.words));
  CUDA(cudaFree(s.found));
  free(s.host);
}
