/* Gets, which kernels have since NCCL 2.30.3: checks of their bytes, bit for bit, and measurements of their time. */
#pragma once
#include "gin_times.cuh"

/* Maximum number of ranks whose requests a kernel can keep. */
#define MOST_RANKS 64

/* Waits until the bytes of all earlier gets have arrived. */
__device__ inline void awaitGets(ncclGin &gin, const ncclDevComm &devComm, bool byRequests) {
  ncclGinRequest_t requests[MOST_RANKS];
  if (!byRequests) {
    gin.flush(ncclCoopThread());
    return;
  }
  for (int peer = 0; peer < devComm.nRanks; peer++)
    gin.flushAsync(ncclTeamWorld(devComm), peer, &requests[peer]);
  for (int peer = devComm.nRanks - 1; peer >= 0; peer--)
    gin.wait(requests[peer]);
}

/* One block: every rank gets from every rank, itself included, and immediately compares the received bytes. */
__global__ void getFromAll(ncclDevComm devComm, int context, ncclWindow_t to, ncclWindow_t from, size_t slot, size_t toOffset, size_t fromOffset, size_t bytes,
                           bool byRequests, int round, uint64_t *found) {
  if (threadIdx.x == 0) {
    ncclGin gin{devComm, context};
    for (int peer = 0; peer < devComm.nRanks; peer++)
      gin.get(ncclTeamWorld(devComm), peer, from, devComm.rank * slot + fromOffset, to, peer * slot + toOffset, bytes);
    awaitGets(gin, devComm, byRequests);
  }
  __syncthreads(); /* pairs with the acquire of the flush or wait: all threads see the data that the first thread waited for */
  for (int peer = 0; peer < devComm.nRanks; peer++)
    compare((uint8_t *)ncclGetLocalPointer(to, peer * slot + toOffset), peer, devComm.rank, round, bytes, found);
}

static size_t checkGets(const Setting &s) {
  size_t wrong = 0;
  int round = 0;
  if (ranks > MOST_RANKS) {
    fprintf(stderr, "rank %d: gets are checked with %d ranks at most\n", rank, MOST_RANKS);
    return 1;
  }
  for (size_t n = 0; n < SIZES_COUNT && SIZES[n] <= s.max; n++)
    for (int context = 0; context < s.contexts; context++, round++) {
      size_t bytes = SIZES[n], fromOffset = fromOffsetOf(round), toOffset = toOffsetOf(round);
      bool byRequests = (n + context) % 2;
      uint64_t found[FINDINGS];
      fill(s, round, fromOffset, bytes);
      everybody(s);
      getFromAll<<<1, 512, 0, stream>>>(s.devComm, context, s.outWindow, s.inWindow, s.slot, toOffset, fromOffset, bytes, byRequests, round, s.found);
      everybody(s); /* no rank reads this rank's bytes from here on */
      run();
      readFindings(s, found);
      size_t bad = wrongBytes(s, round, toOffset, bytes);
      wrong += found[0] + bad;
      if (rank == 0 && context < 2)
        printf("get %10zu B, offsets %3zu to %3zu, by %s: wrong %zu, unseen by the kernel %llu\n", bytes, fromOffset, toOffset,
               byRequests ? "requests" : "flush", bad, (unsigned long long)found[0]);
    }
  return wrong;
}

/* Rank 0 gets bytes from rank 1, and waits until they have arrived. */
__global__ void getAndWait(ncclDevComm devComm, ncclWindow_t to, ncclWindow_t from, size_t bytes, int iterations) {
  ncclGin gin{devComm, 0};
  ncclTeam world = ncclTeamWorld(devComm);
  for (int i = 0; i < iterations; i++) {
    ncclGinRequest_t request;
    gin.get(world, 1, from, 0, to, 0, bytes);
    gin.flushAsync(world, 1, &request);
    gin.wait(request);
  }
}

static void timeGets(const Setting &s) {
  const size_t timed[] = {8, 65536, 1 << 20, 16 << 20};
  for (size_t n = 0; n < sizeof timed / sizeof *timed && timed[n] <= s.max; n++) {
    int many = repeats(s, timed[n]);
    float micros = bestOf(s, many, [&](int) {
      if (rank == 0)
        getAndWait<<<1, 1, 0, stream>>>(s.devComm, s.outWindow, s.inWindow, timed[n], many);
    });
    if (rank == 0)
      printf("get and wait, %7zu B: %10.2f us, %7.2f GB/s\n", timed[n], micros, timed[n] / micros / 1e3);
  }
}
