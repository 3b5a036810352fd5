/*
 * Signals at an offset in a window, which kernels have since NCCL 2.29. They are checked alone and after puts, and they
 * are read, reset and timed.
 */
#pragma once
#include "gin_times.cuh"

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 5)
using WeakInc = ncclGin_WeakVASignalInc;
using WeakAdd = ncclGin_WeakVASignalAdd;
using StrongInc = ncclGin_StrongVASignalInc;
using StrongAdd = ncclGin_StrongVASignalAdd;
#else /* in this release all signals are strong */
using WeakInc = ncclGin_VASignalInc;
using WeakAdd = ncclGin_VASignalAdd;
using StrongInc = ncclGin_VASignalInc;
using StrongAdd = ncclGin_VASignalAdd;
#endif

/* Purposes of a context's signals. After puts, each sender uses its own signals. All senders share the others. */
enum { BEHIND_WEAK, BEHIND_STRONG, COUNTED, ADDED, PASSES_ZERO, VA_PING_PONG, PLACES };
#define VA_UNTOUCHED 0x5a5a5a5a5a5a5a5aull
#define ADDEND ((1ull << 40) + 3)
#define STRONG_STEP ((1ull << 35) + 1)

/*
 * Returns the offset of a signal in the window of words. The words before and after each signal must stay unchanged.
 * The window starts where its memory starts. The reason is resetSignal of a signal in a window, in NCCL 2.29.7 to
 * 2.30.7. It adds the window's offset in its memory twice, so it stores to a wrong address if the offset is not 0.
 */
__host__ __device__ inline size_t vaOffset(int context, int place, int sender, int ranks) {
  static_assert(1 + 2 * CONTEXTS * PLACES <= WORDS_OF_RANK, "room for all signals and the words between them");
  return (1 + 2 * (((size_t)context * PLACES + place) * ranks + sender)) * sizeof(uint64_t);
}

/* Sets all words. No rank may have started to signal. */
static void storeWords(const Setting &s, uint64_t passesZero) {
  uint64_t *host = (uint64_t *)malloc(s.wordsBytes);
  for (size_t i = 0; i < s.wordsBytes / sizeof *host; i++)
    host[i] = VA_UNTOUCHED;
  for (int context = 0; context < s.contexts; context++)
    for (int place = 0; place < PLACES; place++)
      for (int sender = 0; sender < ranks; sender++)
        host[vaOffset(context, place, sender, ranks) / sizeof *host] = place == PASSES_ZERO ? passesZero : 0;
  CUDA(cudaMemcpy(s.words, host, s.wordsBytes, cudaMemcpyHostToDevice));
  CUDA(cudaDeviceSynchronize());
  free(host);
}

/* Returns the number of changed words between the signals. */
static size_t touched(const Setting &s) {
  uint64_t *host = (uint64_t *)malloc(s.wordsBytes);
  size_t signals = (size_t)s.contexts * PLACES * ranks, bad = 0;
  CUDA(cudaMemcpy(host, s.words, s.wordsBytes, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < s.wordsBytes / sizeof *host; i++)
    bad += (i % 2 == 0 || i > 2 * signals) && host[i] != VA_UNTOUCHED;
  free(host);
  return bad;
}

/*
 * One block: every rank puts to every rank, itself included. Either each put carries a weak signal, or a strong signal
 * follows it alone. When a rank sees the signal, the bytes must have arrived.
 */
__global__ void putBehindVaSignal(ncclDevComm devComm, int context, ncclWindow_t to, ncclWindow_t from, size_t slot, size_t toOffset, size_t fromOffset,
                                  size_t bytes, bool strong, ncclWindow_t signals, uint64_t least, int round, uint64_t *found) {
  ncclGin gin{devComm, context};
  ncclTeam world = ncclTeamWorld(devComm);
  int place = strong ? BEHIND_STRONG : BEHIND_WEAK;
  size_t mine = vaOffset(context, place, devComm.rank, devComm.nRanks);
  for (int peer = 0; peer < devComm.nRanks && threadIdx.x == 0; peer++)
    if (strong) {
      gin.put(world, peer, to, devComm.rank * slot + toOffset, from, peer * slot + fromOffset, bytes);
      gin.signal(world, peer, StrongAdd{signals, mine, STRONG_STEP});
    } else {
      gin.put(world, peer, to, devComm.rank * slot + toOffset, from, peer * slot + fromOffset, bytes, WeakInc{signals, mine});
    }
  for (int sender = 0; sender < devComm.nRanks; sender++) {
    if (threadIdx.x == 0)
      gin.waitSignal(ncclCoopThread(), signals, vaOffset(context, place, sender, devComm.nRanks), least);
    __syncthreads(); /* pairs with the acquire of the wait: all threads see the data that the first thread waited for */
    compare((uint8_t *)ncclGetLocalPointer(to, sender * slot + toOffset), sender, devComm.rank, round, bytes, found);
  }
  if (threadIdx.x == 0)
    gin.flush(ncclCoopThread());
}

static size_t checkPutsBehindVaSignals(const Setting &s) {
  size_t wrong = 0;
  uint64_t before[CONTEXTS][2] = {{0}};
  int round = 0;
  for (size_t n = 0; n < SIZES_COUNT && SIZES[n] <= s.max && SIZES[n] < 32 << 20; n++)
    for (int context = 0; context < s.contexts; context++)
      for (int strong = 0; strong < 2; strong++, round++) {
        size_t bytes = SIZES[n], fromOffset = fromOffsetOf(round), toOffset = toOffsetOf(round);
        uint64_t found[FINDINGS];
        fill(s, round, fromOffset, bytes);
        everybody(s);
        before[context][strong] += strong ? STRONG_STEP : 1;
        putBehindVaSignal<<<1, 512, 0, stream>>>(s.devComm, context, s.outWindow, s.inWindow, s.slot, toOffset, fromOffset, bytes, strong, s.wordsWindow,
                                                 before[context][strong], round, s.found);
        run();
        readFindings(s, found);
        size_t bad = wrongBytes(s, round, toOffset, bytes);
        wrong += found[0] + bad;
        if (rank == 0 && context == 0)
          printf("VA signal behind a put of %8zu B, %s: wrong %zu, unseen by the kernel %llu\n", bytes, strong ? "strong add" : "weak increment", bad,
                 (unsigned long long)found[0]);
      }
  return wrong;
}

/* Sends two signals of each kind from every rank to every rank. The last kind may start below 0 and pass 0. */
__global__ void vaSignalAll(ncclDevComm devComm, int context, ncclWindow_t signals, uint64_t passesZero, uint64_t *found) {
  ncclGin gin{devComm, context};
  ncclTeam world = ncclTeamWorld(devComm);
  uint64_t all = 2 * (uint64_t)devComm.nRanks;
  size_t counted = vaOffset(context, COUNTED, 0, devComm.nRanks), added = vaOffset(context, ADDED, 0, devComm.nRanks);
  size_t passing = vaOffset(context, PASSES_ZERO, 0, devComm.nRanks);
  for (int peer = 0; peer < devComm.nRanks; peer++) {
    gin.signal(world, peer, WeakInc{signals, counted});
    gin.signal(world, peer, StrongInc{signals, counted});
    gin.signal(world, peer, WeakAdd{signals, added, ADDEND});
    gin.signal(world, peer, StrongAdd{signals, added, ADDEND});
    gin.signal(world, peer, WeakInc{signals, passing});
    gin.signal(world, peer, StrongInc{signals, passing});
  }
  gin.waitSignal(ncclCoopThread(), signals, counted, all);
  gin.waitSignal(ncclCoopThread(), signals, added, all * ADDEND);
  gin.waitSignal(ncclCoopThread(), signals, passing, passesZero + all);
  found[0] = gin.readSignal(signals, counted);
  found[1] = gin.readSignal(signals, added);
  found[2] = gin.readSignal(signals, added, 32);
  found[3] = gin.readSignal(signals, passing);
  gin.flush(ncclCoopThread());
}

__global__ void vaReset(ncclDevComm devComm, int context, ncclWindow_t signals, uint64_t *found) {
  ncclGin gin{devComm, context};
  for (int place = COUNTED; place <= PASSES_ZERO; place++) {
    size_t at = vaOffset(context, place, 0, devComm.nRanks);
    gin.resetSignal(signals, at);
    found[4 + place - COUNTED] = gin.readSignal(signals, at);
  }
}

/* Checks signals without puts, first as they are filled, and again after a reset to 0. */
static size_t checkVaSignals(const Setting &s) {
  size_t wrong = 0;
  for (int context = 0; context < s.contexts; context++)
    for (int turn = 0; turn < 2; turn++) {
      uint64_t all = 2 * (uint64_t)ranks, passesZero = turn == 0 ? (uint64_t)-ranks : 0, found[FINDINGS];
      everybody(s); /* all ranks have reset */
      vaSignalAll<<<1, 1, 0, stream>>>(s.devComm, context, s.wordsWindow, passesZero, s.found);
      everybody(s); /* no rank signals from here on */
      vaReset<<<1, 1, 0, stream>>>(s.devComm, context, s.wordsWindow, s.found);
      run();
      readFindings(s, found);
      wrong += (found[0] != all) + (found[1] != all * ADDEND) + (found[2] != (uint32_t)(all * ADDEND)) + (found[3] != passesZero + all);
      wrong += (found[4] != 0) + (found[5] != 0) + (found[6] != 0);
    }
  size_t beside = touched(s);
  if (rank == 0)
    printf("VA signals, adds, resets and a wrap on %d contexts: wrong %zu, words beside them %zu\n", s.contexts, wrong, beside);
  return wrong + beside;
}

/* Ranks 0 and 1 signal alternately. */
__global__ void vaPingPong(ncclDevComm devComm, ncclWindow_t signals, uint64_t before, int iterations) {
  ncclGin gin{devComm, 0};
  size_t at = vaOffset(0, VA_PING_PONG, 0, devComm.nRanks);
  for (int i = 0; i < iterations; i++) {
    if (devComm.rank == 1)
      gin.waitSignal(ncclCoopThread(), signals, at, before + i + 1);
    gin.signal(ncclTeamWorld(devComm), 1 - devComm.rank, WeakInc{signals, at});
    if (devComm.rank == 0)
      gin.waitSignal(ncclCoopThread(), signals, at, before + i + 1);
  }
  gin.flush(ncclCoopThread());
}

static void timeVaSignals(const Setting &s) {
  uint64_t before = 0;
  float micros = bestOf(s, s.iterations, [&](int) {
    if (rank < 2)
      vaPingPong<<<1, 1, 0, stream>>>(s.devComm, s.wordsWindow, before, s.iterations);
    before += s.iterations;
  });
  if (rank == 0)
    printf("round trip, VA signal: %10.2f us\n", micros);
}
