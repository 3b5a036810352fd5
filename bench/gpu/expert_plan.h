/*
 * Data that the ranks of nccl_expert.cu exchange, and its location. This file is the same as ExpertPlan and
 * ExpertLayout of com.example.millrace.experts, number for number. The GPU and the plain reference on the host use it.
 * All values follow from the seed.
 */
#include <stddef.h>
#include <stdint.h>

struct Plan {
  int ranks;    /* number of ranks; all take part */
  int channels; /* number of channels that share the tokens of a rank */
  int slots;    /* tokens of a circular buffer */
  int tokens;   /* tokens of each rank in a batch */
  int experts;  /* number of different ranks that receive a token */
  int words;    /* 8-byte words of a token */
  uint64_t seed;

  /* The finalizer of SplitMix64. */
  __host__ __device__ static uint64_t mix(uint64_t value) {
    uint64_t mixed = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebull;
    return mixed ^ mixed >> 31;
  }

  __host__ __device__ uint64_t hash(uint64_t batch, int rank, int token, int64_t what) const {
    return mix(mix(mix(seed + batch * 0x9e3779b97f4a7c15ull) + ((uint64_t)rank << 32 | (uint64_t)token)) + (uint64_t)what);
  }

  /*
   * Returns whether a token is sent to a rank. It visits the ranks in order and selects each with the probability that
   * leads to the required number of ranks.
   */
  __host__ __device__ bool goesTo(uint64_t batch, int rank, int token, int to) const {
    int wanted = experts;
    bool taken = false;
    for (int candidate = 0; candidate <= to; candidate++) {
      taken = hash(batch, rank, token, -1 - candidate) % (uint64_t)(ranks - candidate) < (uint64_t)wanted;
      wanted -= taken ? 1 : 0;
    }
    return taken;
  }

  __host__ __device__ uint64_t word(uint64_t batch, int rank, int token, int at) const { return hash(batch, rank, token, at); }

  /* Returns the result of an expert for one word. */
  __host__ __device__ static uint64_t expert(int rank, uint64_t came) { return came * (2ull * rank + 3) + rank; }

  __host__ __device__ int firstToken(int channel) const { return (int)((int64_t)tokens * channel / channels); }

  /*
   * Returns the next token of a channel, starting at a given token, that is sent to a rank. Returns the channel's end
   * if no such token exists.
   */
  __host__ __device__ int nextToken(uint64_t batch, int rank, int channel, int to, int from) const {
    int end = firstToken(channel + 1), token = from;
    while (token < end && !goesTo(batch, rank, token, to))
      token++;
    return token;
  }

  __host__ __device__ int countTokens(uint64_t batch, int rank, int channel, int to) const {
    int count = 0, end = firstToken(channel + 1);
    for (int token = nextToken(batch, rank, channel, to, firstToken(channel)); token < end; token = nextToken(batch, rank, channel, to, token + 1))
      count++;
    return count;
  }

  __host__ __device__ size_t tokenBytes() const { return (size_t)words * 8; }
};

/*
 * Layout of the window, the same on every rank, and numbers of the signals. The rank in a signal's number is the rank
 * that adds to the signal.
 *
 * - window: counts to each rank | counts from each rank | buffers to send from | buffers to receive into
 * - counts in the window: 8 bytes for each channel
 * - buffers in the window: by channel, then by rank, then by slot
 * - signals: heads (channel * ranks + rank) | tails (channel * ranks + rank) | counts
 */
struct Layout {
  Plan plan;

  __host__ __device__ size_t countsTo(int rank) const { return (size_t)rank * plan.channels * 8; }
  __host__ __device__ size_t countsFrom(int rank) const { return countsTo(plan.ranks + rank); }
  __host__ __device__ size_t countsBytes() const { return (size_t)plan.channels * 8; }
  __host__ __device__ size_t slot(int channel, int rank, uint64_t index) const {
    return (((size_t)channel * plan.ranks + rank) * plan.slots + index % plan.slots) * plan.tokenBytes();
  }
  __host__ __device__ size_t sendSlot(int channel, int rank, uint64_t index) const { return countsTo(2 * plan.ranks) + slot(channel, rank, index); }
  __host__ __device__ size_t receiveSlot(int channel, int rank, uint64_t index) const { return sendSlot(plan.channels, 0, 0) + slot(channel, rank, index); }
  __host__ __device__ size_t windowBytes() const { return receiveSlot(plan.channels, 0, 0); }

  __host__ __device__ unsigned headSignal(int channel, int rank) const { return (unsigned)(channel * plan.ranks + rank); }
  __host__ __device__ unsigned tailSignal(int channel, int rank) const { return (unsigned)(plan.ranks * plan.channels + channel * plan.ranks + rank); }
  __host__ __device__ unsigned countsSignal() const { return (unsigned)(2 * plan.ranks * plan.channels); }
  __host__ __device__ unsigned signals() const { return countsSignal() + 1; }
};
