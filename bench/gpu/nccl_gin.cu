/*
 * One rank of a check and a measurement of GIN: kernels of our own against the installed NCCL's device API. Any libnccl since 2.28, any plugin.
 *
 *   nccl_gin RANK RANKS ID_FILE MAX_BYTES ITERATIONS
 *
 * Checks puts of 0 B to MAX_BYTES at odd offsets, values, signals, counters and resets between all ranks, on all contexts, bit for bit, and more descriptors
 * than a queue holds; with the headers of 2.29.7 and since signals in windows too, of 2.30.3 and since gets. Times round trips between ranks 0 and 1,
 * puts a second, and who waits for the device behind them. Prints a line for each (rank 0) and at the end, every rank: "wrong COUNT".
 */
#include "gin_checks.cuh"
#include "gin_flood.cuh"
#include "gin_times.cuh"
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 7)
#include "gin_va_signals.cuh"
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 3)
#include "gin_gets.cuh"
#endif

/* What all versions have; how much was wrong. */
static size_t checkAndTime(const Setting &s) {
  size_t wrong = checkPuts(s);
  wrong += checkValues(s);
  wrong += checkSignallingOn(s);
  wrong += checkWrap(s);
  wrong += checkFlood(s);
  timeRoundTrips(s);
  timeFlush(s);
  timeBursts(s);
  return wrong;
}

static size_t checkAndTimeVaSignals(const Setting &s) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 7)
  storeWords(s, (uint64_t)-ranks);
  size_t wrong = checkPutsBehindVaSignals(s);
  wrong += checkVaSignals(s);
  timeVaSignals(s);
  return wrong + touched(s);
#else
  return 0;
#endif
}

static size_t checkAndTimeGets(const Setting &s) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 3)
  size_t wrong = checkGets(s);
  timeGets(s);
  return wrong;
#else
  return 0;
#endif
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE MAX_BYTES ITERATIONS\n", argv[0]);
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); /* a run that is ended from outside has said how far it came */
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  join(argv[3]);
  Setting s = newSetting(strtoull(argv[4], NULL, 0), FLOOD_BYTES, atoi(argv[5]));
  if (rank == 0)
    printf("%d ranks, %d contexts, headers of NCCL %d\n", ranks, s.contexts, NCCL_VERSION_CODE);
  size_t wrong = checkAndTime(s);
  wrong += checkAndTimeVaSignals(s);
  wrong += checkAndTimeGets(s);
  printThreads();
  printf("rank %d wrong %zu\n", rank, wrong);
  release(s);
  NCCL(ncclCommDestroy(comm));
  return wrong != 0;
}
