/* The sending half of a kernel. */
#ifndef MILLRACE_TEST_SEND_KERNEL_H
#define MILLRACE_TEST_SEND_KERNEL_H

#include "kernel.h"

#define SIMPLE_BLOCK 128

static inline void post_size(struct kernel *kernel, const struct piece *piece) {
  __atomic_store_n(&kernel->on->recvMem->connFifo[kernel->on->step % NCCL_STEPS].size, (ssize_t)piece->bytes,
                   __ATOMIC_RELAXED);
}

/* Stores a line as two words. Each word carries the flag. */
static inline void store_ll(struct kernel *kernel, const struct piece *piece) {
  ncclLLFifoLine *slot = (ncclLLFifoLine *)slot_of(kernel, piece);
  uint64_t flag = (uint64_t)(uint32_t)(kernel->on->step + 1) << 32;
  struct shuffle order = shuffle(kernel, 2 * piece->bytes / sizeof *slot);
  for (size_t i = 0; i < order.count; i++) {
    size_t word = next_of(&order);
    uint64_t data = (uint32_t)data_word(piece->seed, word);
    __atomic_store_n(&slot[word / 2].v[word % 2], data | flag, __ATOMIC_RELAXED);
    if (i % 64 == 63)
      pause_at_random(kernel);
  }
}

/*
 * Stores lines of LL128 in any order, and the flag of a line possibly before its data: the bus to the host may do so.
 * Only tail shows that all lines have arrived.
 */
static inline void store_ll128(struct kernel *kernel, const struct piece *piece) {
  uint64_t *slot = (uint64_t *)slot_of(kernel, piece);
  struct shuffle order = shuffle(kernel, piece->bytes / 8 / LL128_LINE_WORDS);
  for (size_t i = 0; i < order.count; i++) {
    size_t line = next_of(&order);
    uint64_t *words = slot + line * LL128_LINE_WORDS;
    __atomic_store_n(&words[LL128_DATA_WORDS], kernel->on->step + 1, __ATOMIC_RELAXED);
    if (i % 8 == 7)
      pause_at_random(kernel);
    for (size_t word = LL128_DATA_WORDS; word-- > 0;)
      words[word] = data_word(piece->seed, line * LL128_DATA_WORDS + word);
  }
}

static inline void store_simple(struct kernel *kernel, const struct piece *piece) {
  char *slot = slot_of(kernel, piece);
  struct shuffle order = shuffle(kernel, divide_up(piece->bytes, SIMPLE_BLOCK));
  for (size_t i = 0; i < order.count; i++) {
    size_t begin = next_of(&order) * SIMPLE_BLOCK, end = smaller(begin + SIMPLE_BLOCK, piece->bytes);
    for (size_t at = begin; at < end; at += 8) {
      uint64_t word = data_word(piece->seed, at / 8);
      memcpy(slot + at, &word, smaller(8, end - at));
    }
    if (i % 64 == 63)
      pause_at_random(kernel);
  }
}

static inline int wait_for_credits(struct kernel *kernel, uint64_t end) {
  WAIT_UNTIL(kernel, "credits",
             __atomic_load_n(&kernel->on->sendMem->head, __ATOMIC_ACQUIRE) + NCCL_STEPS >= end);
  return 1;
}

static inline void post_tail(struct kernel *kernel, uint64_t end) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(&kernel->on->recvMem->tail, end, __ATOMIC_RELAXED);
}

/*
 * Posts steps without credits, as an aborted kernel does. The kernel ends when the plugin can detect that: the posted
 * step is beyond any credits in flight.
 */
static inline int run_on(struct kernel *kernel, const struct piece *piece, uint64_t end) {
  if (!kernel->runsOn)
    return 0;
  kernel->patience = 1; /* from now on the kernel does not wait for credits */
  post_size(kernel, piece);
  if (piece->protocol == LL)
    store_ll(kernel, piece);
  else
    post_tail(kernel, end += NCCL_STEPS);
  kernel->on->step = end;
  return piece->protocol == LL;
}

static inline int send_piece(struct kernel *kernel, const struct piece *piece) {
  struct connection *on = kernel->on;
  uint64_t end = on->step + (uint64_t)piece->steps;
  if (!wait_for_credits(kernel, end))
    return run_on(kernel, piece, end);
  /* NCCL's kernel stores the size before the data. No fence orders the two, so the size may become visible later. */
  int sizeLate = next_random(&kernel->jitter) % 8 == 0;
  if (!sizeLate)
    post_size(kernel, piece);
  pause_at_random(kernel);
  if (piece->protocol == LL)
    store_ll(kernel, piece);
  else if (piece->protocol == LL128)
    store_ll128(kernel, piece);
  else
    store_simple(kernel, piece);
  if (sizeLate)
    post_size(kernel, piece);
  pause_at_random(kernel);
  if (piece->protocol != LL)
    post_tail(kernel, end);
  on->step = end;
  return 1;
}

static inline void begin_to_send(struct kernel *kernel) {
  (void)kernel;
}

static inline void *send_kernel(void *argument) {
  run_operations(argument, begin_to_send, send_piece);
  return NULL;
}

/* Checks that all steps were sent: every credit has been returned, and every slot has its initial state. */
static inline int check_all_sent(struct kernel *kernel) {
  struct connection *on = kernel->on;
  WAIT_UNTIL(kernel, "the last credits", __atomic_load_n(&on->sendMem->head, __ATOMIC_ACQUIRE) == on->step);
  for (int slot = 0; slot < NCCL_STEPS; slot++)
    REQUIRE(on->recvMem->connFifo[slot].size == -1, "slot %d still has a size of %zd", slot,
            on->recvMem->connFifo[slot].size);
  return 1;
}

#endif
