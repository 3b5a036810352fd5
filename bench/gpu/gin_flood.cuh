/*
 * Posts more descriptors than a queue holds, from many threads at once. The threads wait for room while Java empties
 * the queue. Each descriptor writes 8 bytes to its own place and increments a signal. Every second descriptor carries
 * the bytes as a value.
 */
#pragma once
#include "gin_setting.cuh"

/* By default a queue of Millrace has 512 places, and a queue of NCCL's own proxy has 32. */
#define FLOOD_BLOCKS 4
#define FLOOD_THREADS 256
#define FLOOD_EACH 4
#define FLOOD_DESCRIPTORS (FLOOD_BLOCKS * FLOOD_THREADS * FLOOD_EACH) /* for each peer, on each context */
#define FLOOD_BYTES (CONTEXTS * FLOOD_DESCRIPTORS * sizeof(uint64_t))

__device__ inline uint64_t eightBytes(int from, int to, int round, size_t at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++)
    value |= (uint64_t)pattern(from, to, round, at + i) << 8 * i;
  return value;
}

/*
 * Runs FLOOD_BLOCKS blocks for each context. The bytes start at `offset` of every slot. A warp posts to one queue at a
 * time, and different warps post to different queues. The compiler may make a warp's threads wait for each other. Even
 * then no thread holds a place in one queue while it waits for room in another.
 */
__global__ void flood(ncclDevComm devComm, int contexts, ncclWindow_t to, ncclWindow_t from, size_t slot, size_t offset, int round, unsigned signal,
                      uint64_t before, uint64_t *found) {
  int context = blockIdx.x % contexts, block = blockIdx.x / contexts, ranks = devComm.nRanks;
  int thread = block * blockDim.x + threadIdx.x, warp = thread / warpSize;
  ncclGin gin{devComm, context};
  ncclTeam world = ncclTeamWorld(devComm);
  for (int i = 0; i < FLOOD_EACH * ranks; i++) {
    int peer = (i + warp) % ranks, each = i / ranks;
    size_t at = (((size_t)context * FLOOD_BLOCKS * FLOOD_THREADS + thread) * FLOOD_EACH + each) * sizeof(uint64_t);
    if ((each + warp) % 2)
      gin.put(world, peer, to, devComm.rank * slot + offset + at, from, peer * slot + offset + at, sizeof(uint64_t), ncclGin_SignalInc{signal});
    else
      gin.putValue(world, peer, to, devComm.rank * slot + offset + at, eightBytes(devComm.rank, peer, round, at), ncclGin_SignalInc{signal});
  }
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  gin.flush(ncclCoopThread());
  gin.waitSignal(ncclCoopThread(), signal, before + (uint64_t)ranks * FLOOD_DESCRIPTORS);
  if (block == 0)
    found[context] = gin.readSignal(signal);
}

static size_t checkFlood(const Setting &s) {
  static_assert(CONTEXTS <= FINDINGS, "a finding for each context");
  const size_t offset = 8, bytes = s.contexts * FLOOD_DESCRIPTORS * sizeof(uint64_t);
  size_t wrong = 0;
  for (int round = 0; round < 3; round++) {
    uint64_t found[FINDINGS], before = (uint64_t)round * ranks * FLOOD_DESCRIPTORS;
    size_t miscounted = 0;
    fill(s, round, offset, bytes);
    everybody(s);
    flood<<<FLOOD_BLOCKS * s.contexts, FLOOD_THREADS, 0, stream>>>(s.devComm, s.contexts, s.outWindow, s.inWindow, s.slot, offset, round, FLOODED, before,
                                                                 s.found);
    run();
    readFindings(s, found);
    for (int context = 0; context < s.contexts; context++)
      miscounted += found[context] != before + (uint64_t)ranks * FLOOD_DESCRIPTORS;
    size_t bad = wrongBytes(s, round, offset, bytes);
    wrong += miscounted + bad;
    if (rank == 0)
      printf("flood of %d descriptors from %d threads to each of %d ranks on each of %d contexts: signals wrong %zu, bytes wrong %zu\n", FLOOD_DESCRIPTORS,
             FLOOD_BLOCKS * FLOOD_THREADS, ranks, s.contexts, miscounted, bad);
  }
  return wrong;
}
