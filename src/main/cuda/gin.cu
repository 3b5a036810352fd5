/*
 * What `millrace gin --device cuda` runs on GPUs: puts and signals of NCCL's device API, and tokens that are dispatched and combined. Compiled where it runs, with the headers of the NCCL that is there,
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

/*
 * Tokens to the ranks of their experts and back, as DeepEP does it. Hybrid: a token goes once to each host that has an expert of its, over the rail to the rank
 * of the sender's own number there, which stores it in the windows of the experts' ranks near it; what the experts make of it is added up there, and one sum
 * comes back over the rail. Direct, for low latency: a token goes straight to each rank, by a store to those near, by a put to the others, and comes back so.
 * Each token has a place in every buffer, so that nobody waits for room. What is sent follows from the seed, as in org.millrace.device.gin.expert.ExpertPlan.
 *
 *   window (a place has `words` of 8 bytes)
 *   sent: token | forwarded: host, token | received: rank, token | partial: host, token | combined: host or rank, token | what is wrong: dispatched, combined
 *
 * A step is a kernel, so that all of its blocks are through before the next begins. A token is the same block's in each of them: a block waits for the puts of
 * its context alone.
 */
#define TOKENS_OUT 2
#define TOKENS_BACK 3
#define DISPATCH_SIGNALS 4
#define WARP 32

struct Exchange {
  ncclWindow_t window;
  uint64_t seed, batch, tokens, experts, words, contexts, direct;

  __device__ static uint64_t mix(uint64_t value) {
    uint64_t mixed = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
  }

  __device__ uint64_t hash(uint64_t rank, uint64_t token, int64_t what) const {
    return mix(mix(mix(seed + batch * 0x9e3779b97f4a7c15ull) + (rank << 32 | token)) + (uint64_t)what);
  }

  /* The ranks that a token of a rank goes to, a bit each: passed in turn, each taken with the probability that makes the number come out. */
  __device__ uint64_t targets(int ranks, int rank, uint64_t token) const {
    uint64_t wanted = experts, all = 0;
    for (int candidate = 0; candidate < ranks; candidate++)
      if (hash(rank, token, -1 - candidate) % (uint64_t)(ranks - candidate) < wanted) {
        wanted--;
        all |= 1ull << candidate;
      }
    return all;
  }

  __device__ static uint64_t expert(int rank, uint64_t came) { return came * (2ull * rank + 3) + rank; }
};

/* This rank's part of an exchange, for one block, which has one context. */
struct Part {
  ncclDevComm const &devComm;
  Exchange const &x;
  ncclGin gin;
  ncclTeam world, rail;
  int ranks, near, hosts, self, host, local, lane;

  __device__ Part(ncclDevComm const &devComm, Exchange const &x)
      : devComm(devComm), x(x), gin(devComm, (int)(blockIdx.x % x.contexts)), world(ncclTeamWorld(devComm)), rail(ncclTeamRail(devComm)), ranks(devComm.nRanks),
        near(ncclTeamLsa(devComm).nRanks), hosts(devComm.nRanks / near), self(devComm.rank), host(devComm.rank / near), local(devComm.rank % near),
        lane(threadIdx.x % WARP) {}

  __device__ size_t bytes() const { return x.words * sizeof(uint64_t); }
  __device__ size_t sent(uint64_t token) const { return token * bytes(); }
  __device__ size_t forwarded(int from, uint64_t token) const { return sent(x.tokens + from * x.tokens + token); }
  __device__ size_t received(int from, uint64_t token) const { return forwarded(hosts, 0) + sent(from * x.tokens + token); }
  __device__ size_t partial(int of, uint64_t token) const { return received(ranks, 0) + sent(of * x.tokens + token); }
  __device__ size_t combined(int by, uint64_t token) const { return partial(hosts, 0) + sent(by * x.tokens + token); }
  __device__ unsigned long long *wrong() const { return (unsigned long long *)ncclGetLocalPointer(x.window, combined(ranks, 0)); }

  __device__ volatile uint64_t *here(size_t offset) const { return (uint64_t *)ncclGetLocalPointer(x.window, offset); }
  __device__ volatile uint64_t *at(int neighbour, size_t offset) const { return (uint64_t *)ncclGetLsaPointer(x.window, offset, neighbour); }
  __device__ uint64_t nearBits(int which) const { return (near == 64 ? ~0ull : (1ull << near) - 1) << which * near; }
  __device__ bool isNear(int rank) const { return rank / near == host; }

  /* Puts a token that the whole warp has written. */
  __device__ void put(ncclTeam team, int peer, size_t to, size_t from) {
    __threadfence_system(); /* pairs with the copy that reads it: every lane's words are there before the descriptor is */
    __syncwarp();
    if (lane == 0)
      gin.put(team, peer, x.window, to, x.window, from, bytes());
    __syncwarp();
  }

  __device__ void copy(volatile uint64_t *to, volatile uint64_t *from) {
    for (uint64_t word = lane; word < x.words; word += WARP)
      to[word] = from[word];
  }

  /* All puts of this block are under way: says so to whoever they may have gone to. */
  __device__ void tellAll(ncclGinSignal_t signal) {
    __threadfence_system();
    __syncthreads();
    for (int peer = threadIdx.x; peer < (x.direct ? ranks : hosts); peer += blockDim.x)
      if (x.direct ? !isNear(peer) : peer != host)
        gin.signal(x.direct ? world : rail, peer, ncclGin_SignalInc{signal});
  }

  /* What the blocks of this context, of all other ranks, have put in this batch and those before is here. */
  __device__ bool allCame(ncclGinSignal_t signal, uint64_t patience, uint64_t *outcome) {
    __shared__ bool came;
    unsigned context = blockIdx.x % (unsigned)x.contexts;
    uint64_t blocks = (gridDim.x - context + x.contexts - 1) / x.contexts, others = x.direct ? ranks - near : hosts - 1;
    if (threadIdx.x == 0)
      came = others == 0 || reached(gin, context, signal, (x.batch + 1) * blocks * others, now() + patience, outcome);
    __syncthreads();
    return came;
  }

  template <class Step> __device__ void eachToken(Step step) {
    uint64_t warps = blockDim.x / WARP;
    for (uint64_t token = blockIdx.x * warps + threadIdx.x / WARP; token < x.tokens; token += gridDim.x * warps)
      step(token);
  }
};

/* All ranks: those near each other meet by stores, then those of each rail by signals. What was put before has left its source. One warp. */
extern "C" __global__ void ginMeet(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x) {
  ncclGin first{devComm, 0};
  for (unsigned context = threadIdx.x; context < x.contexts; context += blockDim.x) {
    ncclGin gin{devComm, (int)context};
    gin.flush(ncclCoopThread());
  }
  __threadfence_system();
  __syncthreads();
  ncclBarrierSession<ncclCoopCta> session{ncclCoopCta(), ncclTeamTagWorld(), first, blockIdx.x};
  session.sync(ncclCoopCta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::Relaxed);
}

/* Makes tokens, and sends them to hosts, or to ranks. */
extern "C" __global__ void ginTokensOut(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x) {
  Part part{devComm, x};
  part.eachToken([&](uint64_t token) {
    uint64_t targets = x.targets(part.ranks, part.self, token);
    volatile uint64_t *mine = part.here(part.sent(token));
    for (uint64_t word = part.lane; word < x.words; word += WARP)
      mine[word] = x.hash(part.self, token, (int64_t)word);
    if (!x.direct) {
      for (int host = 0; host < part.hosts; host++)
        if (host != part.host && (targets & part.nearBits(host)))
          part.put(part.rail, host, part.forwarded(part.host, token), part.sent(token));
      return;
    }
    for (int rank = 0; rank < part.ranks; rank++)
      if (targets >> rank & 1) {
        if (part.isNear(rank))
          part.copy(part.at(rank % part.near, part.received(part.self, token)), mine);
        else
          part.put(part.world, rank, part.received(part.self, token), part.sent(token));
      }
  });
  part.tellAll(TOKENS_OUT);
}

/* Hybrid: stores what came over the rail, and this rank's own tokens, where the experts near it are. */
extern "C" __global__ void ginTokensForward(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x, uint64_t patience,
                                            uint64_t *outcome) {
  Part part{devComm, x};
  if (!part.allCame(TOKENS_OUT, patience, outcome))
    return;
  part.eachToken([&](uint64_t token) {
    for (int host = 0; host < part.hosts; host++) {
      int from = host * part.near + part.local;
      uint64_t targets = x.targets(part.ranks, from, token);
      volatile uint64_t *came = part.here(host == part.host ? part.sent(token) : part.forwarded(host, token));
      for (int neighbour = 0; neighbour < part.near; neighbour++)
        if (targets >> (part.host * part.near + neighbour) & 1)
          part.copy(part.at(neighbour, part.received(from, token)), came);
    }
  });
  __threadfence_system();
}

/* The expert: compares what came, and changes it where it lies. Direct: sends it back. */
extern "C" __global__ void ginTokensExpert(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x, uint64_t patience,
                                           uint64_t *outcome) {
  Part part{devComm, x};
  if (x.direct && !part.allCame(TOKENS_OUT, patience, outcome))
    return;
  part.eachToken([&](uint64_t token) {
    for (int from = 0; from < part.ranks; from++) {
      if (!(x.targets(part.ranks, from, token) >> part.self & 1))
        continue;
      volatile uint64_t *came = part.here(part.received(from, token));
      bool right = true;
      for (uint64_t word = part.lane; word < x.words; word += WARP) {
        uint64_t value = came[word];
        right &= value == x.hash(from, token, (int64_t)word);
        came[word] = Exchange::expert(part.self, value);
      }
      if (!__all_sync(~0u, right) && part.lane == 0)
        atomicAdd(part.wrong(), 1ull);
      if (x.direct && part.isNear(from))
        part.copy(part.at(from % part.near, part.combined(part.self, token)), came);
      else if (x.direct)
        part.put(part.world, from, part.combined(part.self, token), part.received(from, token));
    }
  });
  if (x.direct)
    part.tellAll(TOKENS_BACK);
}

/* Hybrid: adds up what the experts near this rank made of a token, and sends the sum over the rail. */
extern "C" __global__ void ginTokensReturn(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x) {
  Part part{devComm, x};
  part.eachToken([&](uint64_t token) {
    for (int host = 0; host < part.hosts; host++) {
      int from = host * part.near + part.local;
      uint64_t targets = x.targets(part.ranks, from, token) & part.nearBits(part.host);
      if (!targets)
        continue;
      volatile uint64_t *sum = part.here(part.partial(host, token));
      for (uint64_t word = part.lane; word < x.words; word += WARP) {
        uint64_t value = 0;
        for (int neighbour = 0; neighbour < part.near; neighbour++)
          if (targets >> (part.host * part.near + neighbour) & 1)
            value += part.at(neighbour, part.received(from, token))[word];
        sum[word] = value;
      }
      if (host != part.host)
        part.put(part.rail, host, part.combined(part.host, token), part.partial(host, token));
    }
  });
  part.tellAll(TOKENS_BACK);
}

/* Adds up what came back of this rank's tokens, and compares it. */
extern "C" __global__ void ginTokensIn(__grid_constant__ const ncclDevComm devComm, __grid_constant__ const Exchange x, uint64_t patience, uint64_t *outcome) {
  Part part{devComm, x};
  if (!part.allCame(TOKENS_BACK, patience, outcome))
    return;
  part.eachToken([&](uint64_t token) {
    uint64_t targets = x.targets(part.ranks, part.self, token);
    bool right = true;
    for (uint64_t word = part.lane; word < x.words; word += WARP) {
      uint64_t sum = 0, expected = 0;
      for (int by = 0; by < (x.direct ? part.ranks : part.hosts); by++)
        if (targets & (x.direct ? 1ull << by : part.nearBits(by)))
          sum += part.here(!x.direct && by == part.host ? part.partial(by, token) : part.combined(by, token))[word];
      for (int rank = 0; rank < part.ranks; rank++)
        if (targets >> rank & 1)
          expected += Exchange::expert(rank, x.hash(part.self, token, (int64_t)word));
      right &= sum == expected;
    }
    if (!__all_sync(~0u, right) && part.lane == 0)
      atomicAdd(part.wrong() + 1, 1ull);
  });
}
