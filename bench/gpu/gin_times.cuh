/*
 * Measures round trips between ranks 0 and 1 over context 0, the time of a flush, and the number of puts per second.
 * Each figure is the best of several runs, after a run that warms up.
 */
#pragma once
#include "gin_setting.cuh"

#define RUNS 5

/* Returns the number of repetitions of a size in a run. */
static int repeats(const Setting &s, size_t bytes) { return bytes <= 65536 ? s.iterations : bytes <= 1 << 20 ? s.iterations / 4 + 1 : s.iterations / 40 + 2; }

/* Returns the microseconds of one operation. Each launch does `many` operations, and all ranks start together. */
template <class Launch> static float bestOf(const Setting &s, int many, Launch launch) {
  float best = 1e30f;
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  for (int r = 0; r < RUNS; r++) {
    float ms;
    everybody(s);
    CUDA(cudaEventRecord(begin, stream));
    launch(r);
    CUDA(cudaEventRecord(end, stream));
    run();
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (r > 0 && ms * 1e3f / many < best)
      best = ms * 1e3f / many;
  }
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  return best;
}

/* Ranks 0 and 1 put alternately. With 0 bytes they send only a signal. */
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

static void timeRoundTrips(const Setting &s) {
  const size_t timed[] = {0, 8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  uint64_t before = 0;
  for (size_t n = 0; n < sizeof timed / sizeof *timed && timed[n] <= s.max; n++) {
    int many = repeats(s, timed[n]);
    float micros = bestOf(s, many, [&](int) {
      if (rank < 2)
        pingPong<<<1, 1, 0, stream>>>(s.devComm, s.outWindow, s.inWindow, timed[n], PING_PONG, before, many);
      before += many;
    });
    if (rank == 0)
      printf("round trip, %9zu B + signal: %10.2f us, %7.2f GB/s one way\n", timed[n], micros, timed[n] / (micros / 2) / 1e3);
  }
}

/* Repeats a put of 8 bytes and a flush. The flush returns when the source may be written again. */
__global__ void putAndFlush(ncclDevComm devComm, ncclWindow_t to, ncclWindow_t from, int iterations) {
  ncclGin gin{devComm, 0};
  for (int i = 0; i < iterations; i++) {
    gin.put(ncclTeamWorld(devComm), 1, to, 0, from, 0, 8);
    gin.flush(ncclCoopThread());
  }
}

/* Sends a signal from rank 0 to rank 1, after all puts of rank 0. */
__global__ void settle(ncclDevComm devComm, unsigned signal) {
  ncclGin gin{devComm, 0};
  if (devComm.rank == 0)
    gin.signal(ncclTeamWorld(devComm), 1, ncclGin_SignalInc{signal});
  else
    gin.waitSignal(ncclCoopThread(), signal, 1);
}

static void timeFlush(const Setting &s) {
  float micros = bestOf(s, s.iterations, [&](int) {
    if (rank == 0)
      putAndFlush<<<1, 1, 0, stream>>>(s.devComm, s.outWindow, s.inWindow, s.iterations);
  });
  if (rank < 2) /* A flush does not prove that the bytes have arrived, so rank 1 waits for this signal. */
    settle<<<1, 1, 0, stream>>>(s.devComm, SETTLED);
  run();
  if (rank == 0)
    printf("flush behind a put of 8 B: %10.2f us\n", micros);
}

/* Size of a token in DeepEP. */
#define TOKEN_BYTES 7168
#define BURST_BLOCKS 24
#define BURST_EACH 64

/*
 * Ranks 0 and 1 put at the same time, from many blocks to places in any order. The kernel ends when all bytes of the
 * other rank have arrived.
 */
__global__ void burst(ncclDevComm devComm, int contexts, ncclWindow_t to, ncclWindow_t from, size_t places, unsigned signal, uint64_t before) {
  int context = blockIdx.x % contexts, peer = 1 - devComm.rank, blocks = (gridDim.x - context - 1) / contexts + 1;
  ncclGin gin{devComm, context};
  ncclTeam world = ncclTeamWorld(devComm);
  for (int i = 0; i < BURST_EACH; i++) {
    size_t place = ((size_t)i * gridDim.x + blockIdx.x) * 7919 % places;
    gin.put(world, peer, to, place * TOKEN_BYTES, from, place * TOKEN_BYTES, TOKEN_BYTES);
  }
  gin.signal(world, peer, ncclGin_SignalInc{signal});
  // `before` is the signal's earlier value in each context, a multiple of its number of blocks
  gin.waitSignal(ncclCoopThread(), signal, before + blocks);
  gin.flush(ncclCoopThread());
}

static void timeBursts(const Setting &s) {
  const int blocks = BURST_BLOCKS / s.contexts * s.contexts, many = blocks * BURST_EACH;
  const size_t places = s.slot / TOKEN_BYTES;
  uint64_t before = 0;
  auto launch = [&](int) {
    if (rank < 2)
      burst<<<blocks, 1, 0, stream>>>(s.devComm, s.contexts, s.outWindow, s.inWindow, places, BURST, before);
    before += blocks / s.contexts;
  };
  float each = bestOf(s, many, launch);
  if (rank == 0)
    printf("puts of %d B from %d blocks on %d contexts: %10.3f us each, %7.2f GB/s one way\n", TOKEN_BYTES, blocks, s.contexts, each, TOKEN_BYTES / each / 1e3);
}
