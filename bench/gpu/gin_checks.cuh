/*
 * Checks puts, values, signals, counters and resets bit for bit: the functions of the device API since 2.28. Each check
 * returns the number of errors.
 */
#pragma once
#include "gin_setting.cuh"

/*
 * Every rank puts to every rank, itself included. One thread makes one put to each rank, and then waits for the puts of
 * all ranks.
 */
__global__ void putToAll(ncclDevComm devComm, int context, ncclWindow_t to, ncclWindow_t from, size_t slot, size_t toOffset, size_t fromOffset, size_t bytes,
                         unsigned signal, unsigned counter, uint64_t before) {
  ncclGin gin{devComm, context};
  for (int peer = 0; peer < devComm.nRanks; peer++)
    gin.put(ncclTeamWorld(devComm), peer, to, devComm.rank * slot + toOffset, from, peer * slot + fromOffset, bytes, ncclGin_SignalInc{signal},
            ncclGin_CounterInc{counter});
  gin.waitSignal(ncclCoopThread(), signal, before + devComm.nRanks);
  gin.waitCounter(ncclCoopThread(), counter, before + devComm.nRanks);
  gin.flush(ncclCoopThread());
}

static size_t checkPuts(const Setting &s) {
  size_t wrong = 0;
  uint64_t before[CONTEXTS] = {0};
  int round = 0;
  for (size_t n = 0; n < SIZES_COUNT && SIZES[n] <= s.max; n++)
    for (int context = 0; context < s.contexts; context++, round++) {
      size_t bytes = SIZES[n], fromOffset = fromOffsetOf(round), toOffset = toOffsetOf(round);
      fill(s, round, fromOffset, bytes);
      everybody(s);
      putToAll<<<1, 1, 0, stream>>>(s.devComm, context, s.outWindow, s.inWindow, s.slot, toOffset, fromOffset, bytes, BYTES_PUT, 0, before[context]);
      run();
      before[context] += ranks;
      size_t bad = wrongBytes(s, round, toOffset, bytes);
      wrong += bad;
      if (rank == 0 && context == 0)
        printf("put %10zu B, offsets %3zu to %3zu: wrong %zu\n", bytes, fromOffset, toOffset, bad);
    }
  return wrong;
}

/* Puts values of 1, 2, 4 and 8 bytes, one behind the other, and a signal that adds 64 bits. */
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
  found[1] = gin.readSignal(signal);
  found[2] = gin.readCounter(counter);
}

static size_t wrongValues(const Setting &s) {
  size_t bad = 0;
  readOut(s, 0);
  for (int peer = 0; peer < ranks; peer++) {
    uint8_t *at = s.host + peer * s.slot;
    uint16_t two = (uint16_t)(0xb1b2 + peer);
    uint32_t four = 0xc1c2c3c4u + peer;
    uint64_t eight = 0xd1d2d3d4d5d6d7d8ull + peer;
    bad += at[0] != (uint8_t)(0xa1 + peer) || memcmp(at + 2, &two, 2) || memcmp(at + 4, &four, 4) || memcmp(at + 8, &eight, 8);
    bad += at[1] != UNTOUCHED || at[16] != UNTOUCHED;
  }
  return bad;
}

static size_t checkValues(const Setting &s) {
  size_t wrong = 0;
  for (int context = 0; context < s.contexts; context++) {
    uint64_t found[FINDINGS];
    fill(s, 0, 0, 0);
    everybody(s);
    valuesToAll<<<1, 1, 0, stream>>>(s.devComm, context, s.outWindow, s.slot, VALUES_PUT, (1ull << 40) + 3, 0);
    run();
    size_t bad = wrongValues(s);
    everybody(s);
    reset<<<1, 1, 0, stream>>>(s.devComm, context, VALUES_PUT, 0, s.found);
    run();
    readFindings(s, found);
    bad += found[1] != 0 || found[2] != 0;
    wrong += bad;
    if (rank == 0)
      printf("values, 64-bit signals and resets on context %d: wrong %zu\n", context, bad);
  }
  return wrong;
}

/* Adds a new amount to the signals of all ranks, after all ranks have reset their signals. */
__global__ void signalAll(ncclDevComm devComm, int context, unsigned signal, uint64_t add, uint64_t *found) {
  ncclGin gin{devComm, context};
  for (int peer = 0; peer < devComm.nRanks; peer++)
    gin.signal(ncclTeamWorld(devComm), peer, ncclGin_SignalAdd{signal, add});
  gin.waitSignal(ncclCoopThread(), signal, add * devComm.nRanks);
  found[0] = gin.readSignal(signal);
  gin.flush(ncclCoopThread());
}

/*
 * Checks that a signal starts at 0 again after each reset. Since 2.30.5 a reset moves an offset, and the signal itself
 * continues to count.
 */
static size_t checkSignallingOn(const Setting &s) {
  size_t wrong = 0;
  for (int context = 0; context < s.contexts; context++)
    for (int turn = 0; turn < 4; turn++) {
      uint64_t add = turn % 2 ? 1 : (1ull << 33) + turn, found[FINDINGS];
      everybody(s); /* all ranks have reset */
      signalAll<<<1, 1, 0, stream>>>(s.devComm, context, SIGNALLED_ON, add, s.found);
      everybody(s); /* no rank signals from here on */
      reset<<<1, 1, 0, stream>>>(s.devComm, context, SIGNALLED_ON, 1, s.found);
      run();
      readFindings(s, found);
      wrong += found[0] != add * ranks || found[1] != 0;
    }
  if (rank == 0)
    printf("signals after resets on %d contexts: wrong %zu\n", s.contexts, wrong);
  return wrong;
}

/*
 * Takes three steps of almost 2^63; two of the steps wrap. A rank is at most one step ahead of another rank. Its signal
 * is never half the circle away from the awaited value.
 */
__global__ void signalRound(ncclDevComm devComm, int context, unsigned signal, uint64_t add, uint64_t *found) {
  ncclGin gin{devComm, context};
  for (uint64_t step = 1; step <= 3; step++) {
    for (int peer = 0; peer < devComm.nRanks; peer++)
      gin.signal(ncclTeamWorld(devComm), peer, ncclGin_SignalAdd{signal, add});
    gin.waitSignal(ncclCoopThread(), signal, step * add * devComm.nRanks);
  }
  found[0] = gin.readSignal(signal);
  found[1] = gin.readSignal(signal, 16);
  gin.flush(ncclCoopThread());
}

static size_t checkWrap(const Setting &s) {
  size_t wrong = 0;
  for (int context = 0; context < s.contexts; context++) {
    uint64_t add = ~0ull / 2 / ranks, expected = 3 * add * ranks, found[FINDINGS];
    everybody(s);
    signalRound<<<1, 1, 0, stream>>>(s.devComm, context, WRAPPED, add, s.found);
    run();
    readFindings(s, found);
    wrong += found[0] != expected || found[1] != (expected & 0xffff);
  }
  if (rank == 0)
    printf("signals that wrap on %d contexts: wrong %zu\n", s.contexts, wrong);
  return wrong;
}
