/*
 * A kernel's part of one connection, on its own thread. It has the same information as NCCL's kernels: the memory, its
 * step counter and the operations. Behavior that a GPU leaves open is random: pauses, and the order of stores that no
 * fence orders.
 */
#ifndef MILLRACE_TEST_KERNEL_H
#define MILLRACE_TEST_KERNEL_H

#include "connection.h"

#include <pthread.h>
#include <time.h>

#define STUCK_MILLISECONDS 60000
#define YIELDS_PER_LOOK 64

struct totals {
  long steps;
  /* Number of posted units (steps, or slices of Simple) per protocol, and number of units without data. */
  long pieces[PROTOCOLS];
  long empty;
  /* Number of steps that no operation used, because the first step of each operation is rounded up. */
  long gaps;
  long bytes;
};

struct kernel {
  struct connection *on;
  int rank;
  /* Number of steps after which no further operation begins. */
  long steps;
  uint64_t operations;
  uint64_t jitter;
  /* Set by an abort. The kernel then leaves its waits and posts nothing more. */
  volatile int *stop;
  /* Time to wait for a peer without progress before the kernel ends, in milliseconds. 0 waits forever. */
  volatile long patience;
  /*
   * Behavior after the patience is over. If set, the kernel acts as NCCL's aborted kernels do: it waits no longer,
   * completes its operation all the same, and posts data that it has not written.
   */
  int runsOn;
  /* Number of steps after which the kernel ends, also within an operation. 0 if it ends only after an operation. */
  long limit;
  struct totals totals;
  pthread_t thread;
};

/* Ends the process if a kernel makes no progress. */
__attribute__((noreturn)) static inline void stuck(const struct kernel *kernel, const char *what) {
  const struct connection *on = kernel->on;
  fprintf(stderr, "rank %d channel %d %s: stuck at step %lu, waiting for %s; head %lu, tail %lu, sizes", kernel->rank,
          on->channel, on->sends ? "sends" : "receives", on->step, what, on->sendMem->head, on->recvMem->tail);
  for (int slot = 0; slot < NCCL_STEPS; slot++)
    fprintf(stderr, " %zd", on->recvMem->connFifo[slot].size);
  fprintf(stderr, "\n");
  exit(1);
}

static inline long now_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Called repeatedly while a condition does not hold: yields the processor. Returns 0 if the kernel must end. */
static inline int wait_more(struct kernel *kernel, long *yields, long *since, const char *what) {
  if (*kernel->stop)
    return 0;
  if (++*yields % YIELDS_PER_LOOK == 0) {
    long now = now_milliseconds();
    if (!*since)
      *since = now;
    if (kernel->patience && now - *since > kernel->patience)
      return 0;
    if (now - *since > STUCK_MILLISECONDS)
      stuck(kernel, what);
  }
  let_others_run();
  return 1;
}

#define WAIT_UNTIL(kernel, what, condition)                               \
  do {                                                                    \
    long yields_ = 0, since_ = 0;                                      \
    while (!(condition))                                                  \
      if (!wait_more(kernel, &yields_, &since_, what))                 \
        return 0;                                                         \
  } while (0)

/* Pauses at random between two stores, if no thread may see the second store before the first. */
static inline void pause_at_random(struct kernel *kernel) {
  uint64_t draw = next_random(&kernel->jitter);
  if (draw % 16 == 0)
    for (uint64_t i = (draw >> 8) % 4; i-- > 0;)
      sched_yield();
}

/* Visits 0 to count - 1 once each, in an order that looks random. */
struct shuffle {
  size_t count, at, stride;
};

static inline struct shuffle shuffle(struct kernel *kernel, size_t count) {
  struct shuffle order = {count, 0, 1};
  if (count > 2) {
    uint64_t draw = next_random(&kernel->jitter);
    order.at = draw % count;
    order.stride = 1 + (draw >> 32) % (count - 1);
    for (;;) {
      size_t a = count, b = order.stride;
      while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
      }
      if (a == 1)
        break;
      order.stride--;
    }
  }
  return order;
}

static inline size_t next_of(struct shuffle *order) {
  size_t now = order->at;
  order->at = (order->at + order->stride) % order->count;
  return now;
}

static inline char *slot_of(const struct kernel *kernel, const struct piece *piece) {
  return kernel->on->buffers[piece->protocol] +
         kernel->on->step % NCCL_STEPS * slot_bytes(&kernel->on->sizes, piece->protocol);
}

static inline void count_piece(struct kernel *kernel, const struct piece *piece) {
  kernel->totals.pieces[piece->protocol]++;
  kernel->totals.empty += piece->bytes == 0;
  kernel->totals.bytes += (long)piece->bytes;
  kernel->totals.steps += piece->steps;
}

/*
 * Runs operations. One callback runs at the beginning of each operation and one for each piece. Both callbacks return 0
 * if the kernel must end.
 */
static inline void run_operations(struct kernel *kernel, void (*begin)(struct kernel *),
                                  int (*handle)(struct kernel *, const struct piece *)) {
  struct connection *on = kernel->on;
  while (kernel->totals.steps < kernel->steps) {
    struct piece pieces[NCCL_MAX_SLICE_PER_CHUNK];
    struct operation operation = next_operation(&kernel->operations);
    if (operation.protocol == SIMPLE) {
      uint64_t first = divide_up(on->step, (size_t)operation.chunkSteps) * (size_t)operation.chunkSteps;
      kernel->totals.gaps += (long)(first - on->step);
      on->step = first;
      begin(kernel);
    }
    for (int chunk = 0; chunk < operation.chunks; chunk++) {
      int count = next_chunk(&kernel->operations, host_unpacks(), &operation, &on->sizes, pieces);
      for (int i = 0; i < count; i++) {
        if ((kernel->limit && kernel->totals.steps >= kernel->limit) || !handle(kernel, &pieces[i]))
          return;
        count_piece(kernel, &pieces[i]);
      }
    }
  }
}

static inline void print_totals(const char *what, const struct kernel *kernels, int count) {
  struct totals sum = {0};
  for (int i = 0; i < count; i++) {
    const struct totals *each = &kernels[i].totals;
    for (int p = 0; p < PROTOCOLS; p++)
      sum.pieces[p] += each->pieces[p];
    sum.steps += each->steps;
    sum.empty += each->empty;
    sum.gaps += each->gaps;
    sum.bytes += each->bytes;
  }
  printf("%s: %ld steps, %ld LL, %ld LL128, %ld Simple, %ld empty, %ld left out, %ld bytes\n", what, sum.steps,
         sum.pieces[LL], sum.pieces[LL128], sum.pieces[SIMPLE], sum.empty, sum.gaps, sum.bytes);
}

#endif
