/*
 * Kernels of src/examples/java/com/example/millrace/GinOnGpus.java, which check and measure puts and signals of NCCL's
 * device API. They are compiled where they run, with the headers of the installed NCCL. The struct ncclDevComm, which
 * kernels take by value, and the queues behind it change with the release.
 *
 *   nvcc -cubin -O2 -std=c++17 -arch=sm_90 -DNCCL_GIN_GDAKI_ENABLE=0 -I INCLUDE gin_java.cu -o gin_java.cubin
 *
 * No wait takes longer than `patience` nanoseconds. A kernel that exceeds it writes the failed wait and its parameters
 * to `outcome`, and ends.
 */
#include <nccl.h>
#include <nccl_device.h>
#include <stdint.h>

/* Signals of each context. All count up and are never reset. */
#define ARRIVED 0
#define BARRIER 1
#define EXCHANGED 2

/*
 * outcome[0] is 0, or the number of the missing signal plus 1. outcome[1] is the expected value, outcome[2] the value
 * found, and outcome[3] the context.
 */

/* Number of reads of a signal between two reads of the clock, which cost as much as many reads of a signal. */
#define LOOKS 256

__device__ static uint64_t now() {
  uint64_t nanos;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

/* Waits for a signal, with acquire. Data that was put before the signal was sent can be read afterwards. */
__device__ static bool reached(ncclGin &gin, unsigned context, ncclGinSignal_t signal, uint64_t least, uint64_t deadline, uint64_t *outcome) {
  uint64_t found;
  do {
    for (int look = 0; look < LOOKS; look++)
      if ((found = gin.readSignal(signal)) >= least)
        return true;
  } while (now() <= deadline);
  outcome[1] = least;
  outcome[2] = found;
  outcome[3] = context;
  __threadfence_system(); /* the host reads the first word first, so the others must be visible before it */
  *(volatile uint64_t *)outcome = (uint64_t)signal + 1;
  return false;
}

/* Waits for all ranks. Called by one warp, over context 0. */
__device__ static bool meet(ncclDevComm const &devComm, uint64_t least, uint64_t deadline, uint64_t *outcome) {
  ncclGin gin{devComm, 0};
  for (int peer = threadIdx.x; peer < devComm.nRanks; peer += warpSize)
    gin.signal(ncclTeamWorld(devComm), peer, ncclGin_SignalInc{BARRIER});
  bool met = threadIdx.x != 0 || reached(gin, 0, BARRIER, least, deadline, outcome);
  return __all_sync(~0u, met);
}

/*
 * Writes facts of the compilation. facts[0] is NCCL_VERSION_CODE, facts[1] is the size of ncclDevComm in bytes. One
 * thread.
 */
extern "C" __global__ void ginFacts(uint64_t *facts) {
  facts[0] = NCCL_VERSION_CODE;
  facts[1] = sizeof(ncclDevComm);
}

/* Returns when all ranks have called it. `met` is the number of earlier meetings. One warp. */
extern "C" __global__ void ginBarrier(__grid_constant__ const ncclDevComm devComm, uint64_t met, uint64_t patience, uint64_t *outcome) {
  meet(devComm, (met + 1) * devComm.nRanks, now() + patience, outcome);
}

/*
 * Ranks 0 and 1 send alternately, over context 0. 0 bytes is a signal alone. `before` is the number of earlier rounds.
 * One thread.
 */
extern "C" __global__ void ginPingPong(__grid_constant__ const ncclDevComm devComm, ncclWindow_t to, ncclWindow_t from, uint64_t bytes, uint64_t before,
                                       uint64_t rounds, uint64_t patience, uint64_t *outcome) {
  ncclGin gin{devComm, 0};
  ncclTeam world = ncclTeamWorld(devComm);
  int peer = 1 - devComm.rank;
  uint64_t deadline = now() + patience;
  for (uint64_t round = before + 1; round <= before + rounds; round++) {
    if (devComm.rank == 1 && !reached(gin, 0, ARRIVED, round, deadline, outcome))
      return;
    if (bytes)
      gin.put(world, peer, to, 0, from, 0, bytes, ncclGin_SignalInc{ARRIVED});
    else
      gin.signal(world, peer, ncclGin_SignalInc{ARRIVED});
    if (devComm.rank == 0 && !reached(gin, 0, ARRIVED, round, deadline, outcome))
      return;
  }
  gin.flush(ncclCoopThread());
}

/*
 * Every rank puts `bytes` to every rank, including itself. Part `peer` of `from` becomes part `rank` of the peer's
 * `to`. Data for a rank uses the context of that rank's number, modulo the number of contexts. All ranks meet after
 * every round. `before` and `met` are the numbers of earlier rounds and meetings. One warp.
 */
extern "C" __global__ void ginAllToAll(__grid_constant__ const ncclDevComm devComm, uint64_t contexts, ncclWindow_t to, ncclWindow_t from, uint64_t bytes,
                                       uint64_t before, uint64_t met, uint64_t rounds, uint64_t patience, uint64_t *outcome) {
  ncclTeam world = ncclTeamWorld(devComm);
  unsigned mine = devComm.rank % contexts;
  ncclGin arrivals{devComm, (int)mine};
  uint64_t deadline = now() + patience;
  for (uint64_t round = 1; round <= rounds; round++) {
    for (int step = threadIdx.x; step < devComm.nRanks; step += warpSize) {
      int peer = (devComm.rank + step) % devComm.nRanks;
      ncclGin gin{devComm, (int)(peer % contexts)};
      gin.put(world, peer, to, devComm.rank * bytes, from, peer * bytes, bytes, ncclGin_SignalInc{EXCHANGED});
    }
    bool arrived = threadIdx.x != 0 || reached(arrivals, mine, EXCHANGED, (before + round) * devComm.nRanks, deadline, outcome);
    if (!__all_sync(~0u, arrived) || !meet(devComm, (met + round) * devComm.nRanks, deadline, outcome))
      return;
  }
  for (unsigned context = threadIdx.x; context < contexts; context += warpSize) {
    ncclGin gin{devComm, (int)context};
    gin.flush(ncclCoopThread());
  }
}
