/*
 * What `millrace gin --device cuda` runs on GPUs: puts and signals of NCCL's device API. Compiled where it runs, with the headers of the NCCL that is there,
 * because the struct that kernels take by value, ncclDevComm, and the queues behind it change with the release.
 *
 *   nvcc -cubin -O2 -std=c++17 -arch=sm_90 -DNCCL_GIN_GDAKI_ENABLE=0 -I INCLUDE gin.cu -o gin.cubin
 *
 * Nothing waits for longer than `patience` nanoseconds: a kernel that ran out of it says in `outcome` which wait it was, and for what, and ends.
 */
#include <nccl.h>
#include <nccl_device.h>
#include <stdint.h>

/* Signals of each context, all counted up and never reset. */
#define ARRIVED 0
#define BARRIER 1

/* outcome[0] is 0, or one more than the signal that did not come; outcome[1] the value waited for, outcome[2] the one found, outcome[3] the context. */

/* At a signal between two looks at the clock, which cost as much as many of them. */
#define LOOKS 256

__device__ static uint64_t now() {
  uint64_t nanos;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

/* Waits for a signal. Acquires: what was put before it was sent can be read after this. */
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
  __threadfence_system(); /* the host reads the first word first: the others are there before it */
  *(volatile uint64_t *)outcome = (uint64_t)signal + 1;
  return false;
}

/* All ranks, by one warp, over context 0. */
__device__ static bool meet(ncclDevComm const &devComm, uint64_t least, uint64_t deadline, uint64_t *outcome) {
  ncclGin gin{devComm, 0};
  for (int peer = threadIdx.x; peer < devComm.nRanks; peer += warpSize)
    gin.signal(ncclTeamWorld(devComm), peer, ncclGin_SignalInc{BARRIER});
  bool met = threadIdx.x != 0 || reached(gin, 0, BARRIER, least, deadline, outcome);
  return __all_sync(~0u, met);
}

/* What this was compiled with: facts[0] is NCCL_VERSION_CODE, facts[1] the bytes of ncclDevComm. One thread. */
extern "C" __global__ void ginFacts(uint64_t *facts) {
  facts[0] = NCCL_VERSION_CODE;
  facts[1] = sizeof(ncclDevComm);
}

/* Returns when all ranks are here. `met` is how often they have met before. One warp. */
extern "C" __global__ void ginBarrier(__grid_constant__ const ncclDevComm devComm, uint64_t met, uint64_t patience, uint64_t *outcome) {
  meet(devComm, (met + 1) * devComm.nRanks, now() + patience, outcome);
}

/* Ranks 0 and 1 in turn, over context 0; 0 bytes is a signal alone. `before` is how many rounds there were before. One thread. */
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
 * Every rank puts `bytes` to every rank, itself included: part `peer` of `from` becomes part `rank` of the peer's `to`. What goes to a rank goes through the
 * context of that rank's number, counted round. All meet after every round. `before` and `met` are how many rounds and meetings there were before. One warp.
 */
extern "C" __global__ void ginAllToAll(__grid_constant__ const ncclDevComm devComm, unsigned contexts, ncclWindow_t to, ncclWindow_t from, uint64_t bytes,
                                       uint64_t before, uint64_t met, uint64_t rounds, uint64_t patience, uint64_t *outcome) {
  ncclTeam world = ncclTeamWorld(devComm);
  unsigned mine = devComm.rank % contexts;
  ncclGin arrivals{devComm, (int)mine};
  uint64_t deadline = now() + patience;
  for (uint64_t round = 1; round <= rounds; round++) {
    for (int step = threadIdx.x; step < devComm.nRanks; step += warpSize) {
      int peer = (devComm.rank + step) % devComm.nRanks;
      ncclGin gin{devComm, (int)(peer % contexts)};
      gin.put(world, peer, to, devComm.rank * bytes, from, peer * bytes, bytes, ncclGin_SignalInc{ARRIVED});
    }
    bool arrived = threadIdx.x != 0 || reached(arrivals, mine, ARRIVED, (before + round) * devComm.nRanks, deadline, outcome);
    if (!__all_sync(~0u, arrived) || !meet(devComm, (met + round) * devComm.nRanks, deadline, outcome))
      return;
  }
  for (unsigned context = threadIdx.x; context < contexts; context += warpSize) {
    ncclGin gin{devComm, (int)context};
    gin.flush(ncclCoopThread());
  }
}
