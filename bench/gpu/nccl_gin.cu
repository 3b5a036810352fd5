/*
 * One rank of a check and a measurement of GIN: kernels of our own against the installed NCCL's device API. Any libnccl since 2.28, any plugin.
 *
 *   nccl_gin RANK RANKS ID_FILE MAX_BYTES ITERATIONS
 *
 * Checks puts of 0 B to MAX_BYTES at odd offsets, values, signals, counters and resets between all ranks, on all contexts, bit for bit; then times round trips
 * between ranks 0 and 1. Prints a line for each (rank 0) and at the end, every rank: "wrong COUNT".
 */
#include "gin_rank.h"

#define CONTEXTS 4
#define SIGNALS 16
#define COUNTERS 4
/* What is put lies somewhere in here, between bytes that nobody may touch. */
#define MARGIN 256
#define UNTOUCHED 0x5a

static uint8_t pattern(int from, int to, int round, size_t i) { return (uint8_t)(i * 31 + i / 251 + from * 7 + to * 13 + round * 17); }

/* Every rank puts to every rank, itself included: one thread, one put each, then waits for all that come. */
__global__ void putToAll(ncclDevComm devComm, int context, ncclWindow_t to, size_t toSlot, ncclWindow_t from, size_t fromSlot, size_t toOffset, size_t fromOffset,
                         size_t bytes, unsigned signal, unsigned counter, uint64_t before, uint64_t countBefore) {
  ncclGin gin{devComm, context};
  for (int peer = 0; peer < devComm.nRanks; peer++)
    gin.put(ncclTeamWorld(devComm), peer, to, devComm.rank * toSlot + toOffset, from, peer * fromSlot + fromOffset, bytes, ncclGin_SignalInc{signal},
            ncclGin_CounterInc{counter});
  gin.waitSignal(ncclCoopThread(), signal, before + devComm.nRanks);
  gin.waitCounter(ncclCoopThread(), counter, countBefore + devComm.nRanks);
  gin.flush(ncclCoopThread());
}

/* Values of 1, 2, 4 and 8 bytes, each behind the one before, and a signal that adds 64 bits. */
__global__ void valuesToAll(ncclDevComm devComm, int context, ncclWindow_t to, size_t toSlot, unsigned signal, uint64_t add, uint64_t before) {
  ncclGin gin{devComm, context};
  ncclTeam world = ncclTeamWorld(devComm);
  for (int peer = 0; peer < devComm.nRanks; peer++) {
    size_t at = devComm.rank * toSlot;
    gin.putValue(world, peer, to, at + 0, (uint8_t)(0xa1 + devComm.rank));
    gin.putValue(world, peer, to, at + 2, (uint16_t)(0xb1b2 + devComm.rank));
    gin.putValue(world, peer, to, at + 4, (uint32_t)(0xc1c2c3c4u + devComm.rank));
    gin.putValue(world, peer, to, at + 8, (uint64_t)(0xd1d2d3d4d5d6d7d8ull + devComm.rank));
    gin.signal(world, peer, ncclGin_SignalAdd{signal, add});
  }
  gin.waitSignal(ncclCoopThread(), signal, before + add * devComm.nRanks);
  gin.flush(ncclCoopThread());
}

__global__ void reset(ncclDevComm devComm, int context, unsigned signal, unsigned counter, uint64_t *found) {
  ncclGin gin{devComm, context};
  gin.resetSignal(signal);
  gin.resetCounter(counter);
  found[0] = gin.readSignal(signal);
  found[1] = gin.readCounter(counter);
}

/* Ranks 0 and 1 in turn; 0 bytes is a signal alone. */
__global__ void pingPong(ncclDevComm devComm, ncclWindow_t to, ncclWindow_t from, size_t bytes, unsigned signal, uint64_t before, int iterations) {
  ncclGin gin{devComm, 0};
  ncclTeam world = ncclTeamWorld(devComm);
  int peer = 1 - devComm.rank;
  for (int i = 0; i < iterations; i++) {
    if (devComm.rank == 1)
      gin.waitSignal(ncclCoopThread(), signal, before + i + 1);
    if (bytes)
      gin.put(world, peer, to, 0, from, 0, bytes, ncclGin_SignalInc{signal});
    else
      gin.signal(world, peer, ncclGin_SignalInc{signal});
    if (devComm.rank == 0)
      gin.waitSignal(ncclCoopThread(), signal, before + i + 1);
  }
  gin.flush(ncclCoopThread());
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE MAX_BYTES ITERATIONS\n", argv[0]);
    return 1;
  }
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  size_t max = strtoull(argv[4], NULL, 0);
  int iterations = atoi(argv[5]);
  join(argv[3]);
  size_t slot = (max + 2 * MARGIN + 4095) / 4096 * 4096, all = slot * ranks;
  uint8_t *in, *out, *host = (uint8_t *)malloc(all);
  NCCL(ncclMemAlloc((void **)&in, all));
  NCCL(ncclMemAlloc((void **)&out, all));
  ncclWindow_t inWindow, outWindow;
  NCCL(ncclCommWindowRegister(comm, in, all, &inWindow, NCCL_WIN_COLL_SYMMETRIC));
  NCCL(ncclCommWindowRegister(comm, out, all, &outWindow, NCCL_WIN_COLL_SYMMETRIC));
  ncclDevComm devComm = newDeviceCommunicator(CONTEXTS, SIGNALS, COUNTERS);
  int contexts = (int)devComm.ginContextCount < CONTEXTS ? (int)devComm.ginContextCount : CONTEXTS; /* what was asked for is a hint */
  if (rank == 0)
    printf("%d ranks, %d contexts\n", ranks, contexts);

  size_t wrong = 0;
  uint64_t signals[CONTEXTS][SIGNALS] = {{0}}, counts[CONTEXTS] = {0};
  const size_t sizes[] = {0, 1, 3, 8, 100, 4096, 65541, 262144, 1048579, 16777223, 67108864};
  int round = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= max; s++)
    for (int context = 0; context < contexts; context++, round++) {
      size_t bytes = sizes[s], fromOffset = (round * 29 + 1) % MARGIN, toOffset = (round * 53 + 13) % MARGIN, bad = 0;
      for (int peer = 0; peer < ranks; peer++)
        for (size_t i = 0; i < bytes; i++)
          host[peer * slot + fromOffset + i] = pattern(rank, peer, round, i);
      CUDA(cudaMemcpy(in, host, all, cudaMemcpyHostToDevice));
      CUDA(cudaMemset(out, UNTOUCHED, all));
      CUDA(cudaDeviceSynchronize());
      barrier<<<1, 32, 0, stream>>>(devComm);
      putToAll<<<1, 1, 0, stream>>>(devComm, context, outWindow, slot, inWindow, slot, toOffset, fromOffset, bytes, 1, 0, signals[context][1], counts[context]);
      run();
      signals[context][1] += ranks;
      counts[context] += ranks;
      CUDA(cudaMemcpy(host, out, all, cudaMemcpyDeviceToHost));
      for (int peer = 0; peer < ranks; peer++)
        for (size_t i = 0; i < bytes + 2 * MARGIN; i++) {
          int put = i >= toOffset && i < toOffset + bytes;
          bad += host[peer * slot + i] != (put ? pattern(peer, rank, round, i - toOffset) : UNTOUCHED);
        }
      wrong += bad;
      if (rank == 0 && context == 0)
        printf("put %10zu B, offsets %3zu to %3zu: wrong %zu\n", bytes, fromOffset, toOffset, bad);
    }

  for (int context = 0; context < contexts; context++) {
    const uint64_t add = (1ull << 40) + 3;
    size_t bad = 0;
    CUDA(cudaMemset(out, UNTOUCHED, all));
    CUDA(cudaDeviceSynchronize());
    barrier<<<1, 32, 0, stream>>>(devComm);
    valuesToAll<<<1, 1, 0, stream>>>(devComm, context, outWindow, slot, 2, add, 0);
    run();
    CUDA(cudaMemcpy(host, out, all, cudaMemcpyDeviceToHost));
    for (int peer = 0; peer < ranks; peer++) {
      uint8_t *at = host + peer * slot;
      uint16_t two = (uint16_t)(0xb1b2 + peer);
      uint32_t four = 0xc1c2c3c4u + peer;
      uint64_t eight = 0xd1d2d3d4d5d6d7d8ull + peer;
      bad += at[0] != (uint8_t)(0xa1 + peer) || at[1] != UNTOUCHED || memcmp(at + 2, &two, 2) || memcmp(at + 4, &four, 4) || memcmp(at + 8, &eight, 8) || at[16] != UNTOUCHED;
    }
    uint64_t *found, after[2];
    CUDA(cudaMalloc((void **)&found, sizeof after));
    barrier<<<1, 32, 0, stream>>>(devComm);
    reset<<<1, 1, 0, stream>>>(devComm, context, 2, 0, found);
    run();
    CUDA(cudaMemcpy(after, found, sizeof after, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(found));
    bad += after[0] != 0 || after[1] != 0;
    wrong += bad;
    if (rank == 0)
      printf("values, 64-bit signals and resets on context %d: wrong %zu\n", context, bad);
  }

  uint64_t before = 0;
  const size_t timed[] = {0, 8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  for (size_t s = 0; s < sizeof timed / sizeof *timed && timed[s] <= max; s++) {
    int many = timed[s] <= 65536 ? iterations : timed[s] <= 1 << 20 ? iterations / 4 + 1 : iterations / 40 + 2;
    float best = 1e30f;
    for (int r = 0; r < 5; r++) { /* the first is a warm-up */
      barrier<<<1, 32, 0, stream>>>(devComm);
      CUDA(cudaEventRecord(begin, stream));
      if (rank < 2)
        pingPong<<<1, 1, 0, stream>>>(devComm, outWindow, inWindow, timed[s], 3, before, many);
      CUDA(cudaEventRecord(end, stream));
      run();
      before += many;
      float ms;
      CUDA(cudaEventElapsedTime(&ms, begin, end));
      if (r > 0 && ms / many < best)
        best = ms / many;
    }
    if (rank == 0)
      printf("round trip, %9zu B + signal: %10.2f us, %7.2f GB/s one way\n", timed[s], best * 1e3, timed[s] / (best / 2) / 1e6);
  }
  printThreads();
  printf("rank %d wrong %zu\n", rank, wrong);
  fflush(stdout);
  NCCL(ncclDevCommDestroy(comm, &devComm));
  NCCL(ncclCommWindowDeregister(comm, inWindow));
  NCCL(ncclCommWindowDeregister(comm, outWindow));
  NCCL(ncclMemFree(in));
  NCCL(ncclMemFree(out));
  NCCL(ncclCommDestroy(comm));
  return wrong != 0;
}
