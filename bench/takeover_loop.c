/*
 * Two processes that act as libnccl does on two hosts, over connections that the plugin has taken over. They time the
 * network traffic of ring all-reduces of several sizes. The program does not check the data.
 *
 * Usage: LIBRARY SIZE...
 *
 * It prints a line "SIZE MICROSECONDS" for each size.
 */
#define _GNU_SOURCE
#include "communicator.h"

#define LARGEST_OF_LL 8
#define WARM_NANOSECONDS 3000000000L
#define TIMED_NANOSECONDS 1500000000L
#define MOST_BATCHES 4096
/* Number of consecutive polls without progress after which a size without LL sleeps between polls, to free the core. */
#define PATIENCE 64

static int sizeCount;
static char **sizeTexts;

/*
 * Sends of a rank in the ring of two ranks, in a loop. In each all-reduce a rank sends its own half of the data, and
 * forwards the other rank's half after it has arrived.
 */
struct ring {
  int protocol;
  int stepsOfSlice;
  int slicesOfChunk;
  size_t bytesOfChunk;
  long chunks;
};

static long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static size_t bytes_of(const char *text) {
  char *unit;
  size_t number = strtoul(text, &unit, 10);
  return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : 0);
}

static struct ring ring_of(size_t bytes, const struct buffer_sizes *sizes) {
  size_t part = divide_up(bytes, RANKS), most = slot_bytes(sizes, SIMPLE) * ALLREDUCE_CHUNKSTEPS;
  if (bytes <= LARGEST_OF_LL)
    return (struct ring){LL, 1, 1, part, 1};
  return (struct ring){SIMPLE, ALLREDUCE_SLICESTEPS, ALLREDUCE_CHUNKSTEPS / ALLREDUCE_SLICESTEPS, smaller(part, most),
                       (long)divide_up(part, most)};
}

/* Returns the length of a chunk's slice by NCCL's rule: a multiple of 16 bytes, and not below a minimum. */
static size_t slice_bytes(const struct ring *ring, const struct buffer_sizes *sizes, int slice) {
  if (ring->protocol == LL)
    return sizeof(ncclLLFifoLine);
  size_t bytes = divide_up(ring->bytesOfChunk, 16 * (size_t)ring->slicesOfChunk) * 16;
  size_t least = slot_bytes(sizes, SIMPLE) * (size_t)ring->stepsOfSlice / 32, begin;
  bytes = bytes < least ? least : bytes;
  begin = smaller(bytes * (size_t)slice, ring->bytesOfChunk);
  return smaller(bytes, ring->bytesOfChunk - begin);
}

static ncclLLFifoLine *line_of(const struct connection *on) {
  return (ncclLLFifoLine *)(on->buffers[LL] + on->step % NCCL_STEPS * slot_bytes(&on->sizes, LL));
}

static int send_slice(struct connection *on, const struct ring *ring, int slice) {
  uint64_t end = on->step + (uint64_t)ring->stepsOfSlice;
  if (__atomic_load_n(&on->sendMem->head, __ATOMIC_ACQUIRE) + NCCL_STEPS < end)
    return 0;
  __atomic_store_n(&on->recvMem->connFifo[on->step % NCCL_STEPS].size, (ssize_t)slice_bytes(ring, &on->sizes, slice),
                   __ATOMIC_RELAXED);
  if (ring->protocol == LL) {
    for (int half = 0; half < 2; half++)
      __atomic_store_n(&line_of(on)->v[half], (on->step + 1) << 32, __ATOMIC_RELEASE);
  } else {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&on->recvMem->tail, end, __ATOMIC_RELAXED);
  }
  on->step = end;
  return 1;
}

static int receive_slice(struct connection *on, const struct ring *ring) {
  uint64_t end = on->step + (uint64_t)ring->stepsOfSlice, flag = (uint32_t)(on->step + 1);
  if (ring->protocol == LL) {
    for (int half = 0; half < 2; half++)
      if (__atomic_load_n(&line_of(on)->v[half], __ATOMIC_ACQUIRE) >> 32 != flag)
        return 0;
  } else if (__atomic_load_n(&on->recvMem->tail, __ATOMIC_ACQUIRE) < end) {
    return 0;
  }
  on->step = end;
  __atomic_store_n(&on->sendMem->head, end, __ATOMIC_RELEASE);
  return 1;
}

static void wait_a_little(const struct ring *ring, long fruitless) {
  const struct timespec least = {0, 1};
  if (ring->protocol != LL && fruitless > PATIENCE)
    nanosleep(&least, NULL);
  else
    sched_yield();
}

/*
 * Runs one all-reduce. The first half of a chunk's sends are this rank's data, and the second half forwards received
 * data. The next chunk begins after that.
 */
static void all_reduce(struct rank *rank, const struct ring *ring) {
  struct connection *in = &rank->connections[0], *out = &rank->connections[1];
  long slices = ring->slicesOfChunk, ofChunk = 2 * slices, all = ring->chunks * ofChunk;
  long sent = 0, received = 0, fruitless = 0;
  if (ring->protocol == SIMPLE) {
    out->step = divide_up(out->step, ALLREDUCE_CHUNKSTEPS) * ALLREDUCE_CHUNKSTEPS;
    in->step = divide_up(in->step, ALLREDUCE_CHUNKSTEPS) * ALLREDUCE_CHUNKSTEPS;
    __atomic_store_n(&in->sendMem->head, in->step, __ATOMIC_RELEASE);
  }
  while (sent < all || received < all) {
    long chunk = sent / ofChunk, at = sent % ofChunk;
    long needs = chunk * ofChunk + (at < slices ? 0 : at - slices + 1);
    int moved = 0;
    if (sent < all && received >= needs && send_slice(out, ring, (int)(at % slices))) {
      sent++;
      moved = 1;
    }
    if (received < all && receive_slice(in, ring)) {
      received++;
      moved = 1;
    }
    fruitless = moved ? 0 : fruitless + 1;
    if (!moved)
      wait_a_little(ring, fruitless);
  }
}

static int by_size(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

/* Returns the next phase of a size: warm-up, timed, or over. Rank 0 decides, and informs rank 1. */
static char next_phase(struct rank *rank, char phase, long since) {
  if (rank->number == 0) {
    if (nanoseconds() - since > (phase == 'w' ? WARM_NANOSECONDS : TIMED_NANOSECONDS))
      phase = phase == 'w' ? 't' : 'e';
    tell(rank, &phase, 1);
  } else {
    hear(rank, &phase, 1);
  }
  return phase;
}

static void time_size(struct rank *rank, const char *text, const struct buffer_sizes *sizes) {
  static double times[MOST_BATCHES];
  size_t bytes = bytes_of(text);
  struct ring ring = ring_of(bytes, sizes);
  int batch = bytes <= LARGEST_OF_LL ? 200 : bytes < (1 << 20) ? 50 : bytes < (16 << 20) ? 4 : 1, count = 0;
  long since = nanoseconds();
  for (char phase = 'w'; phase != 'e';) {
    long begin;
    meet(rank);
    begin = nanoseconds();
    for (int i = 0; i < batch; i++)
      all_reduce(rank, &ring);
    if (phase == 't' && count < MOST_BATCHES)
      times[count++] = (double)(nanoseconds() - begin) / batch / 1000;
    char next = next_phase(rank, phase, since);
    if (next != phase)
      since = nanoseconds();
    phase = next;
  }
  qsort(times, (size_t)count, sizeof *times, by_size);
  if (rank->number == 0) {
    printf("%s %.2f\n", text, times[count / 2]);
    fflush(stdout);
  }
}

static void traffic(struct rank *rank) {
  struct buffer_sizes sizes = buffer_sizes(1);
  set_up(rank, &sizes);
  for (int i = 0; i < sizeCount; i++)
    time_size(rank, sizeTexts[i], &sizes);
  meet(rank);
  tear_down(rank);
}

int main(int count, char **arguments) {
  REQUIRE(count > 2, "usage: LIBRARY SIZE...");
  sizeCount = count - 2;
  sizeTexts = arguments + 2;
  return two_processes(arguments[1], 1, traffic) != 0;
}
