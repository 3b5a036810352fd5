/*
 * One rank of a check and a measurement of GIN. The kernels are our own and use the device API of the installed NCCL.
 * The program runs with any libnccl since 2.28 and any plugin.
 *
 * nccl_gin RANK RANKS ID_FILE MAX_BYTES ITERATIONS
 *
 * Checks puts of 0 B to MAX_BYTES at odd offsets, values, signals, counters and resets. The checks cover all pairs of
 * ranks and all contexts, bit for bit. A further check posts more descriptors than a queue holds. With headers since
 * 2.29.7 it also checks signals in windows, and with headers since 2.30.3 gets. The measurements are the round trips
 * between ranks 0 and 1, the puts per second, and the calls that wait for the device behind puts. Rank 0 prints a line
 * for each. At the end every rank prints "wrong COUNT".
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

/* Runs the checks and measurements that all NCCL versions support. Returns the number of errors. */
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
  setvbuf(stdout, NULL, _IOLBF, 0); /* The output of a run that is ended from outside shows its progress. */
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
