/*
 * One rank of the exchange of a mixture of experts, as DeepEP does it over NCCL's GIN. Tokens are dispatched to the
 * ranks of their experts. The results of the experts are combined at the rank that sent the token. The kernels are our
 * own and use the device API of the installed NCCL. The package com.example.millrace.experts in src/examples is the
 * same program on the emulated device, part by part and with the same names. The program runs with any libnccl since
 * 2.28 and any plugin.
 *
 * nccl_expert RANK RANKS ID_FILE TOKENS SEED
 *
 * TOKENS is the number of tokens of all ranks together; they are sent in batches. Routing and content follow from SEED
 * and are the same on every rank.
 *
 * Every channel has a circular buffer for each pair of ranks. Its sender puts tokens into the peer's buffer and adds
 * their number to the peer's tail signal. Its receiver uses the tokens and adds their number to the sender's head
 * signal. A channel's context is its number modulo the number of contexts. The host compares every token with a plain
 * reference, after the dispatch and after the combine.
 *
 * Rank 0 prints the time of a batch and tokens/s. At the end every rank prints "wrong COUNT". A kernel that waits for a
 * head or a tail for longer than 30 s reports the signal and ends. The script that starts the ranks limits all other
 * waits.
 */
#include "expert_plan.h"
#include "gin_rank.h"

#include <vector>

#define CHANNELS 4
#define CONTEXTS 2
#define SLOTS 64
#define BATCH 4096
#define WORDS 32
#define WARP 32
#define PATIENCE_NANOS 30000000000ull

/* Outcome of a kernel: no error, or the signal that did not reach the expected value. */
enum { FINE = 0, NO_HEAD = 1, NO_TAIL = 2, TOO_MANY = 3 };
struct Outcome {
  int what, channel, rank;
  unsigned long long expected, found;
};

/* Data that all kernels of an exchange use. */
struct Exchange {
  Plan plan;
  Layout layout;
  int contexts;
  ncclWindow_t window;
  char *memory;                 /* memory of the window */
  uint64_t *kept;               /* received tokens, by rank, then by channel */
  unsigned long long *combined; /* combined results, by token */
  Outcome *outcome;

  __device__ uint64_t *at(size_t offset) const { return (uint64_t *)(memory + offset); }
  __device__ uint64_t count(size_t counts, int channel) const { return ((volatile uint64_t *)at(counts))[channel]; }
  /* Returns the index in kept of the first token of a rank's channel. */
  __host__ __device__ size_t keptAt(int rank, int channel) const { return ((size_t)rank * plan.tokens + plan.firstToken(channel)) * plan.words; }
};

/* --- sources and destinations of tokens; one warp uses each of them, for one rank -------------- */

/* This rank's own tokens of one channel that are sent to a given rank. */
struct OwnTokens {
  uint64_t batch;
  int self, channel, next;

  __device__ OwnTokens(Exchange const &x, uint64_t batch, int self, int channel)
      : batch(batch), self(self), channel(channel), next(x.plan.firstToken(channel)) {}

  __device__ void write(Exchange const &x, int rank, uint64_t *slot) {
    int token = x.plan.nextToken(batch, self, channel, rank, next);
    next = token + 1;
    for (int word = threadIdx.x % WARP; word < x.plan.words; word += WARP)
      slot[word] = x.plan.word(batch, self, token, word);
  }
};

/*
 * Tokens that this rank's experts received. The rank keeps each token as it arrived, and sends the expert's result
 * back.
 */
struct ReceivedTokens {
  int self, channel;
  size_t position = 0;

  __device__ ReceivedTokens(int self, int channel) : self(self), channel(channel) {}

  __device__ void take(Exchange const &x, int rank, volatile uint64_t *slot) {
    uint64_t *to = x.kept + x.keptAt(rank, channel) + position++ * x.plan.words;
    for (int word = threadIdx.x % WARP; word < x.plan.words; word += WARP)
      to[word] = slot[word];
  }

  __device__ void write(Exchange const &x, int rank, uint64_t *slot) {
    const uint64_t *from = x.kept + x.keptAt(rank, channel) + position++ * x.plan.words;
    for (int word = threadIdx.x % WARP; word < x.plan.words; word += WARP)
      slot[word] = Plan::expert(self, from[word]);
  }
};

/*
 * Results for this rank's own tokens: the sum over the token's experts. The warps of several experts add at the same
 * time.
 */
struct CombinedTokens {
  uint64_t batch;
  int self, channel, token;

  __device__ CombinedTokens(Exchange const &x, uint64_t batch, int self, int channel)
      : batch(batch), self(self), channel(channel), token(x.plan.firstToken(channel)) {}

  __device__ void take(Exchange const &x, int rank, volatile uint64_t *slot) {
    token = x.plan.nextToken(batch, self, channel, rank, token);
    unsigned long long *to = x.combined + (size_t)token++ * x.plan.words;
    for (int word = threadIdx.x % WARP; word < x.plan.words; word += WARP)
      atomicAdd(to + word, slot[word]);
  }
};

/* --- the two blocks of a channel, with a warp for each rank ------------------------------------ */

__device__ static uint64_t now() {
  uint64_t nanos;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

/*
 * Reads a signal on one lane, with acquire order for the whole warp. Data that the peer put before the signal can be
 * read after this call.
 */
__device__ static uint64_t readSignal(ncclGin const &gin, unsigned signal) {
  uint64_t value = threadIdx.x % WARP == 0 ? gin.readSignal(signal) : 0;
  return __shfl_sync(~0u, value, 0);
}

/* Only the first caller that gives up stores its reason. */
__device__ static void giveUp(Exchange const &x, int what, int channel, int rank, uint64_t expected, uint64_t found) {
  if (threadIdx.x % WARP == 0 && atomicCAS(&x.outcome->what, FINE, what) == FINE) {
    x.outcome->channel = channel;
    x.outcome->rank = rank;
    x.outcome->expected = expected;
    x.outcome->found = found;
  }
}

/* Returns whether the warp has waited too long. All lanes of the warp get the same result. */
__device__ static bool isLate(uint64_t deadline) { return __shfl_sync(~0u, now() > deadline, 0); }

/*
 * Fills slots of the buffer for a rank, puts them into the same slots of the rank's buffer, and adds their number to
 * the rank's tail. A slot is free again when the rank's head has passed it, because then the put from the slot is
 * complete too. Ends when the rank has used all tokens, so that no head signal is in flight any longer.
 */
template <class Source>
__device__ static void sendTokens(ncclDevComm const &devComm, Exchange const &x, int channel, int rank, uint64_t total, Source source) {
  ncclGin gin{devComm, channel % x.contexts};
  ncclTeam world = ncclTeamWorld(devComm);
  uint64_t written = 0, sent = 0, deadline = now() + PATIENCE_NANOS;
  for (uint64_t head = 0; sent < total || head < total; head = readSignal(gin, x.layout.headSignal(channel, rank))) {
    for (uint64_t limit = head + x.plan.slots; written < total && written < limit; written++)
      source.write(x, rank, x.at(x.layout.sendSlot(channel, rank, written)));
    /* up to the buffer's end; the rest follows in the next pass */
    uint64_t toEnd = x.plan.slots - sent % x.plan.slots, count = written - sent < toEnd ? written - sent : toEnd;
    if (count > 0) {
      __threadfence_system(); /* pairs with the copy that reads the slots: the words of every lane are visible before the descriptor */
      __syncwarp();
      if (threadIdx.x % WARP == 0) {
        gin.put(world, rank, x.window, x.layout.receiveSlot(channel, devComm.rank, sent), x.window, x.layout.sendSlot(channel, rank, sent),
                count * x.plan.tokenBytes());
        gin.signal(world, rank, ncclGin_SignalAdd{x.layout.tailSignal(channel, devComm.rank), count});
      }
      __syncwarp();
      sent += count;
      deadline = now() + PATIENCE_NANOS;
    } else if (isLate(deadline)) {
      return giveUp(x, NO_HEAD, channel, rank, total, head);
    }
  }
}

/* Takes tokens up to a rank's tail, and adds their number to that rank's head. */
template <class Sink>
__device__ static void receiveTokens(ncclDevComm const &devComm, Exchange const &x, int channel, int rank, uint64_t total, Sink sink) {
  ncclGin gin{devComm, channel % x.contexts};
  ncclTeam world = ncclTeamWorld(devComm);
  uint64_t deadline = now() + PATIENCE_NANOS;
  for (uint64_t taken = 0; taken < total;) {
    uint64_t tail = readSignal(gin, x.layout.tailSignal(channel, rank)), delta = tail - taken;
    if (tail > total)
      return giveUp(x, TOO_MANY, channel, rank, total, tail);
    for (; taken < tail; taken++)
      sink.take(x, rank, x.at(x.layout.receiveSlot(channel, rank, taken)));
    if (delta > 0) {
      __syncwarp(); /* Every lane has read the slots before the head signal frees them. */
      if (threadIdx.x % WARP == 0)
        gin.signal(world, rank, ncclGin_SignalAdd{x.layout.headSignal(channel, devComm.rank), delta});
      deadline = now() + PATIENCE_NANOS;
    } else if (isLate(deadline)) {
      return giveUp(x, NO_TAIL, channel, rank, total, tail);
    }
  }
}

/* --- the steps of a batch ---------------------------------------------------------------------- */

/* Flushes every context. After that the sources of all posted descriptors have been read. Runs in one warp. */
__device__ static void quiet(ncclDevComm const &devComm, int contexts) {
  for (int context = 0; context < contexts; context++) {
    ncclGin gin{devComm, context};
    gin.flush(ncclCoopCta());
  }
}

/*
 * Sets every head and tail of this rank to 0, in the context of its channel. When the kernel ends, all other ranks have
 * done the same. No head or tail signal is in flight, because senders have seen their last heads. Runs in one warp.
 */
__global__ void reset(ncclDevComm devComm, Exchange x) {
  ncclGin first{devComm, 0};
  ncclBarrierSession<ncclCoopCta> session{ncclCoopCta(), ncclTeamTagWorld(), first, blockIdx.x};
  quiet(devComm, x.contexts);
  session.sync(ncclCoopCta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::Relaxed);
  for (int i = threadIdx.x; i < x.plan.channels * x.plan.ranks; i += blockDim.x) {
    int channel = i / x.plan.ranks, rank = i % x.plan.ranks;
    ncclGin gin{devComm, channel % x.contexts};
    gin.resetSignal(x.layout.headSignal(channel, rank));
    gin.resetSignal(x.layout.tailSignal(channel, rank));
  }
  __threadfence_system(); /* pairs with the barrier: no rank adds to a signal before the reset */
  session.sync(ncclCoopCta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::Relaxed);
}

/* Sends all ranks the number of tokens that each channel will carry, and receives their numbers. Runs in one warp. */
__global__ void announce(ncclDevComm devComm, Exchange x, uint64_t batch) {
  ncclGin gin{devComm, 0};
  for (int i = threadIdx.x; i < x.plan.channels * x.plan.ranks; i += blockDim.x) {
    int channel = i % x.plan.channels, rank = i / x.plan.channels;
    x.at(x.layout.countsTo(rank))[channel] = x.plan.countTokens(batch, devComm.rank, channel, rank);
  }
  __threadfence_system(); /* pairs with the copies that read the counts */
  __syncthreads();
  unsigned signal = x.layout.countsSignal();
  for (int rank = threadIdx.x; rank < x.plan.ranks; rank += blockDim.x)
    gin.put(ncclTeamWorld(devComm), rank, x.window, x.layout.countsFrom(devComm.rank), x.window, x.layout.countsTo(rank), x.layout.countsBytes(),
            ncclGin_SignalInc{signal});
  if (threadIdx.x == 0)
    gin.increaseSignalShadow(signal, x.plan.ranks);
  __syncthreads();
  gin.waitSignalMeetShadow(ncclCoopCta(), signal);
}

/* One block of each channel sends, another block receives. Each block has a warp for each rank. */
__global__ void dispatch(ncclDevComm devComm, Exchange x, uint64_t batch) {
  int channel = blockIdx.x / 2, rank = threadIdx.x / WARP;
  if (blockIdx.x % 2 == 0)
    sendTokens(devComm, x, channel, rank, x.count(x.layout.countsTo(rank), channel), OwnTokens(x, batch, devComm.rank, channel));
  else
    receiveTokens(devComm, x, channel, rank, x.count(x.layout.countsFrom(rank), channel), ReceivedTokens(devComm.rank, channel));
}

/* Sends the experts' results back, one for each received token. */
__global__ void combine(ncclDevComm devComm, Exchange x, uint64_t batch) {
  int channel = blockIdx.x / 2, rank = threadIdx.x / WARP;
  if (blockIdx.x % 2 == 0)
    sendTokens(devComm, x, channel, rank, x.count(x.layout.countsFrom(rank), channel), ReceivedTokens(devComm.rank, channel));
  else
    receiveTokens(devComm, x, channel, rank, x.count(x.layout.countsTo(rank), channel), CombinedTokens(x, batch, devComm.rank, channel));
}

/* --- the host: the plain reference ------------------------------------------------------------- */

/* Exits if a rank has announced a number of tokens that differs from the number that it must send. */
static void requireCounts(Exchange const &x, uint64_t batch) {
  std::vector<uint64_t> counts((size_t)x.plan.ranks * x.plan.channels);
  CUDA(cudaMemcpy(counts.data(), x.memory + x.layout.countsFrom(0), counts.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
  for (int from = 0; from < x.plan.ranks; from++)
    for (int channel = 0; channel < x.plan.channels; channel++) {
      uint64_t announced = counts[(size_t)from * x.plan.channels + channel], expected = x.plan.countTokens(batch, from, channel, rank);
      if (announced != expected) {
        fprintf(stderr, "rank %d, batch %lu: rank %d, channel %d announces %lu tokens instead of %lu\n", rank, batch, from, channel, announced, expected);
        exit(5);
      }
    }
}

/*
 * Returns the number of received tokens that differ from the tokens sent. Adds the number of tokens that this rank
 * should have received to *came.
 */
static size_t wrongDispatched(Exchange const &x, uint64_t batch, size_t *came) {
  std::vector<uint64_t> kept((size_t)x.plan.ranks * x.plan.tokens * x.plan.words);
  CUDA(cudaMemcpy(kept.data(), x.kept, kept.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (int from = 0; from < x.plan.ranks; from++)
    for (int channel = 0; channel < x.plan.channels; channel++) {
      const uint64_t *at = kept.data() + x.keptAt(from, channel);
      for (int token = x.plan.firstToken(channel); token < x.plan.firstToken(channel + 1); token++) {
        if (!x.plan.goesTo(batch, from, token, rank))
          continue;
        bool right = true;
        for (int word = 0; word < x.plan.words; word++)
          right &= *at++ == x.plan.word(batch, from, token, word);
        wrong += !right;
        ++*came;
      }
    }
  return wrong;
}

/* Returns the number of this rank's tokens that differ from the sum over their experts. */
static size_t wrongCombined(Exchange const &x, uint64_t batch) {
  std::vector<uint64_t> combined((size_t)x.plan.tokens * x.plan.words);
  CUDA(cudaMemcpy(combined.data(), x.combined, combined.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (int token = 0; token < x.plan.tokens; token++) {
    bool right = true;
    for (int word = 0; word < x.plan.words; word++) {
      uint64_t expected = 0;
      for (int to = 0; to < x.plan.ranks; to++)
        expected += x.plan.goesTo(batch, rank, token, to) ? Plan::expert(to, x.plan.word(batch, rank, token, word)) : 0;
      right &= combined[(size_t)token * x.plan.words + word] == expected;
    }
    wrong += !right;
  }
  return wrong;
}

static void requireEnd(Exchange const &x, const char *step, uint64_t batch) {
  Outcome outcome;
  CUDA(cudaMemcpy(&outcome, x.outcome, sizeof outcome, cudaMemcpyDeviceToHost));
  if (outcome.what == FINE)
    return;
  const char *what = outcome.what == NO_HEAD ? "after 30 s the head of" : outcome.what == NO_TAIL ? "after 30 s the tail of" : "the tail of";
  fprintf(stderr, "rank %d, %s of batch %lu, channel %d: %s rank %d is %llu instead of %llu\n", rank, step, batch, outcome.channel, what, outcome.rank,
          outcome.found, outcome.expected);
  exit(6);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s RANK RANKS ID_FILE TOKENS SEED\n", argv[0]);
    return 1;
  }
  rank = atoi(argv[1]);
  ranks = atoi(argv[2]);
  if (ranks > 1024 / WARP) {
    fprintf(stderr, "%d ranks: a block has a warp for each, and at most %d\n", ranks, 1024 / WARP);
    return 1;
  }
  uint64_t tokens = strtoull(argv[4], NULL, 0), seed = strtoull(argv[5], NULL, 0);
  join(argv[3]);

  Exchange x = {};
  x.plan = Plan{ranks, CHANNELS, SLOTS, BATCH, ranks < 2 ? 1 : ranks / 2, WORDS, seed};
  x.layout = Layout{x.plan};
  size_t keptBytes = (size_t)ranks * BATCH * x.plan.tokenBytes(), combinedBytes = BATCH * x.plan.tokenBytes();
  size_t bytes = (x.layout.windowBytes() + 4095) / 4096 * 4096;
  NCCL(ncclMemAlloc((void **)&x.memory, bytes));
  NCCL(ncclCommWindowRegister(comm, x.memory, bytes, &x.window, NCCL_WIN_COLL_SYMMETRIC));
  CUDA(cudaMalloc((void **)&x.kept, keptBytes));
  CUDA(cudaMalloc((void **)&x.combined, combinedBytes));
  CUDA(cudaMalloc((void **)&x.outcome, sizeof *x.outcome));
  CUDA(cudaMemset(x.outcome, 0, sizeof *x.outcome));
  CUDA(cudaDeviceSynchronize());
  ncclDevComm devComm = newDeviceCommunicator(CONTEXTS, (int)x.layout.signals(), 0);
  x.contexts = (int)devComm.ginContextCount < CONTEXTS ? (int)devComm.ginContextCount : CONTEXTS;
  uint64_t perBatch = (uint64_t)BATCH * ranks, batches = (tokens + perBatch - 1) / perBatch;
  if (rank == 0)
    printf("expert: %d ranks, %d channels over %d contexts, %d experts a token, %d bytes a token, %lu batches, seed %lu\n", ranks, CHANNELS, x.contexts,
           x.plan.experts, WORDS * 8, batches, seed);

  cudaEvent_t begin[2], end[2];
  for (int step = 0; step < 2; step++) {
    CUDA(cudaEventCreate(&begin[step]));
    CUDA(cudaEventCreate(&end[step]));
  }
  size_t came = 0, wrong = 0;
  double millis[2] = {0}; /* milliseconds of dispatches, and of resets and combines; without the first batch if there are others */
  uint64_t timed = 0;
  for (uint64_t batch = 0; batch < batches; batch++) {
    CUDA(cudaMemsetAsync(x.kept, 0, keptBytes, stream));
    CUDA(cudaMemsetAsync(x.combined, 0, combinedBytes, stream));
    reset<<<1, WARP, 0, stream>>>(devComm, x);
    announce<<<1, WARP, 0, stream>>>(devComm, x, batch);
    run();
    requireCounts(x, batch);
    barrier<<<1, WARP, 0, stream>>>(devComm);
    CUDA(cudaEventRecord(begin[0], stream));
    dispatch<<<2 * CHANNELS, ranks * WARP, 0, stream>>>(devComm, x, batch);
    CUDA(cudaEventRecord(end[0], stream));
    run();
    requireEnd(x, "dispatch", batch);
    CUDA(cudaEventRecord(begin[1], stream));
    reset<<<1, WARP, 0, stream>>>(devComm, x);
    combine<<<2 * CHANNELS, ranks * WARP, 0, stream>>>(devComm, x, batch);
    CUDA(cudaEventRecord(end[1], stream));
    run();
    requireEnd(x, "combine", batch);
    bool counts = batch > 0 || batches == 1;
    for (int step = 0; counts && step < 2; step++) {
      float elapsed;
      CUDA(cudaEventElapsedTime(&elapsed, begin[step], end[step]));
      millis[step] += elapsed;
    }
    timed += counts;
    wrong += wrongDispatched(x, batch, &came) + wrongCombined(x, batch);
  }
  if (rank == 0)
    printf("expert: %lu tokens, a batch of %lu: dispatch %.1f us, reset and combine %.1f us, %.0f tokens/s\n", batches * perBatch, perBatch,
           millis[0] * 1e3 / timed, millis[1] * 1e3 / timed, perBatch * timed / ((millis[0] + millis[1]) / 1e3));
  printThreads();
  printf("rank %d expert tokens %lu, came %zu, wrong %zu\n", rank, batches * BATCH, came, wrong);
  fflush(stdout);
  barrier<<<1, WARP, 0, stream>>>(devComm); /* No rank exits while another rank still signals to it. */
  run();
  NCCL(ncclDevCommDestroy(comm, &devComm));
  NCCL(ncclCommWindowDeregister(comm, x.window));
  NCCL(ncclMemFree(x.memory));
  NCCL(ncclCommDestroy(comm));
  return wrong != 0;
}
