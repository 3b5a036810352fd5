/* The receiving half of a kernel. It checks every byte. */
#ifndef MILLRACE_TEST_RECEIVE_KERNEL_H
#define MILLRACE_TEST_RECEIVE_KERNEL_H

#include "kernel.h"

#define IS_DATA(condition, kernel, piece, at)                                                                     \
  REQUIRE(condition, "wrong data: rank %d channel %d step %lu protocol %d, %zu bytes, word %zu", (kernel)->rank, \
          (kernel)->on->channel, (kernel)->on->step, (piece)->protocol, (piece)->bytes, (size_t)(at))

/* Polls the flags, and never reads tail. */
static inline int check_ll(struct kernel *kernel, const struct piece *piece) {
  ncclLLFifoLine *slot = (ncclLLFifoLine *)slot_of(kernel, piece);
  uint32_t flag = (uint32_t)(kernel->on->step + 1);
  struct shuffle order = shuffle(kernel, 2 * piece->bytes / sizeof *slot);
  for (size_t i = 0; i < order.count; i++) {
    size_t word = next_of(&order);
    uint64_t found;
    WAIT_UNTIL(kernel, "LL flags",
               (found = __atomic_load_n(&slot[word / 2].v[word % 2], __ATOMIC_RELAXED)) >> 32 == flag);
    IS_DATA((uint32_t)found == (uint32_t)data_word(piece->seed, word), kernel, piece, word);
  }
  return 1;
}

/* Checks the data of a line immediately after its flag. */
static inline int check_ll128(struct kernel *kernel, const struct piece *piece) {
  uint64_t *slot = (uint64_t *)slot_of(kernel, piece);
  struct shuffle order = shuffle(kernel, piece->bytes / 8 / LL128_LINE_WORDS);
  for (size_t i = 0; i < order.count; i++) {
    size_t line = next_of(&order);
    uint64_t *words = slot + line * LL128_LINE_WORDS;
    WAIT_UNTIL(kernel, "LL128 flags",
               __atomic_load_n(&words[LL128_DATA_WORDS], __ATOMIC_ACQUIRE) == kernel->on->step + 1);
    for (size_t word = LL128_DATA_WORDS; word-- > 0;)
      IS_DATA(words[word] == data_word(piece->seed, line * LL128_DATA_WORDS + word), kernel, piece, word);
  }
  return 1;
}

static inline int check_simple(struct kernel *kernel, const struct piece *piece) {
  char *slot = slot_of(kernel, piece);
  uint64_t end = kernel->on->step + (uint64_t)piece->steps;
  WAIT_UNTIL(kernel, "tail", __atomic_load_n(&kernel->on->recvMem->tail, __ATOMIC_ACQUIRE) >= end);
  if (kernel->on->unpack) {
    kernel->on->unpackHead++;
    if (piece->bytes)
      unpack(kernel->on->unpack, kernel->on->unpackHead, slot, piece->bytes);
  }
  for (size_t at = 0; at < piece->bytes; at += 8) {
    uint64_t word = data_word(piece->seed, at / 8);
    IS_DATA(memcmp(slot + at, &word, smaller(8, piece->bytes - at)) == 0, kernel, piece, at / 8);
  }
  return 1;
}

/* Returns the credits of the previous operation, at the beginning of the next. */
static inline void return_credits(struct kernel *kernel) {
  if (kernel->on->unpack)
    __atomic_store_n(&kernel->on->unpack->head, kernel->on->unpackHead, __ATOMIC_RELAXED);
  __atomic_store_n(&kernel->on->sendMem->head, kernel->on->step, __ATOMIC_RELEASE);
}

static inline int receive_piece(struct kernel *kernel, const struct piece *piece) {
  int complete = piece->protocol == LL      ? check_ll(kernel, piece)
                 : piece->protocol == LL128 ? check_ll128(kernel, piece)
                                            : check_simple(kernel, piece);
  if (!complete)
    return 0;
  pause_at_random(kernel);
  kernel->on->step += (uint64_t)piece->steps;
  return_credits(kernel);
  return 1;
}

static inline void *receive_kernel(void *argument) {
  run_operations(argument, return_credits, receive_piece);
  return NULL;
}

/* Checks that no other thread has written the sizes in connFifo at the receiving end. */
static inline void check_sizes_untouched(const struct kernel *kernel) {
  for (int slot = 0; slot < NCCL_STEPS; slot++)
    REQUIRE(kernel->on->recvMem->connFifo[slot].size == -1, "somebody wrote the size of slot %d", slot);
}

#endif
