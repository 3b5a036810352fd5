/* Work of the kernels on one connection: operations that are drawn from a seed, the same at both ends. */
#ifndef MILLRACE_TEST_OPERATIONS_H
#define MILLRACE_TEST_OPERATIONS_H

#include "device_slots.h"
#include "host.h"
#include "nccl/rccl.h"

enum { LL, LL128, SIMPLE, PROTOCOLS };

/*
 * Number of words of an LL128 line, with the flag, and the unit of LL128: the size of the lines that a warp writes at
 * once. RCCL is the number of threads in a warp of an AMD GPU, 64 or 32. Sources: headers/nccl/rccl.h.
 */
#ifdef RCCL
#define LL128_LINE_WORDS (sizeof(rcclLL128Line) / 8)
#define LL128_UNIT_WIRE ((size_t)RCCL * 8 * 8)
#define USUAL_BUFFERS {{262144, 458752, 4194304}}
#else
#define LL128_LINE_WORDS NCCL_LL128_LINEELEMS
#define LL128_UNIT_WIRE 2048
#define USUAL_BUFFERS {{DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE, DEFAULT_BUFFSIZE}}
#endif
#define LL128_DATA_WORDS (LL128_LINE_WORDS - 1)
#define LL128_UNIT_DATA (LL128_UNIT_WIRE / LL128_LINE_WORDS * LL128_DATA_WORDS)
#define LL_LINE_DATA 8

/* The data that a kernel posts at once: a step, or a Simple slice of two. */
struct piece {
  int protocol;
  int steps;
  /* Size as in connFifo, including the lines' flags. */
  size_t bytes;
  /* Seed of the piece's data. */
  uint64_t seed;
};

struct operation {
  int protocol;
  /* Number of steps of a chunk. The first step of an operation is rounded up to a multiple of it. */
  int chunkSteps;
  int sliceSteps;
  int chunks;
};

/* Buffer sizes of one communicator. They are the same for all its connections. */
struct buffer_sizes {
  size_t bytes[PROTOCOLS];
};

static inline size_t slot_bytes(const struct buffer_sizes *sizes, int protocol) {
  return sizes->bytes[protocol] / NCCL_STEPS;
}

/* Returns the library's own sizes, or much smaller ones that make full slots more frequent. */
static inline struct buffer_sizes buffer_sizes(int usual) {
  if (usual)
    return (struct buffer_sizes)USUAL_BUFFERS;
  return (struct buffer_sizes){{NCCL_STEPS * 4096, NCCL_STEPS * 8 * LL128_UNIT_WIRE, NCCL_STEPS * 16384}};
}

/* Returns a word of a piece's data. */
static inline uint64_t data_word(uint64_t seed, size_t index) {
  return (seed + index) * 0x9E3779B97F4A7C15UL;
}

/* Draws a length up to a limit. It is often zero or small, and sometimes the limit. */
static inline size_t random_length(uint64_t *random, size_t limit) {
  uint64_t draw = next_random(random);
  switch (draw % 8) {
  case 0:
  case 1:
    return 0;
  case 2:
  case 3:
    return (draw >> 8) % 65 % (limit + 1);
  case 4:
    return (draw >> 4) % 4 ? (draw >> 8) % (limit + 1) : limit;
  default:
    return (draw >> 8) % (limit / 16 + 1);
  }
}

static inline struct operation next_operation(uint64_t *random) {
  uint64_t draw = next_random(random);
  int chunks = 1 + (int)((draw >> 8) % 6);
  switch (draw % 4) {
  case 0:
    return (struct operation){LL, 1, 1, 2 * chunks};
  case 1:
    if (host_slots_on_device())
      return (struct operation){SIMPLE, 1, 1, 2 * chunks};
    return (struct operation){LL128, 1, 1, 2 * chunks};
  case 2: /* send, receive, trees */
    return (struct operation){SIMPLE, 1, 1, 2 * chunks};
  default: /* rings */
    return (struct operation){SIMPLE, ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS, chunks};
  }
}

static inline size_t divide_up(size_t amount, size_t unit) {
  return (amount + unit - 1) / unit;
}

static inline size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

/*
 * Draws the slices or steps of an operation's next chunk. Returns their number. If a chunk does not fill its slices,
 * the last slices are empty, and are posted too.
 */
static inline int next_chunk(uint64_t *random, int unpacks, const struct operation *operation,
                             const struct buffer_sizes *sizes, struct piece *pieces) {
  size_t slot = slot_bytes(sizes, operation->protocol);
  int slices = operation->chunkSteps / operation->sliceSteps;
  size_t room = slot * (size_t)operation->chunkSteps;
  if (operation->protocol == LL)
    room = slot / sizeof(ncclLLFifoLine) * LL_LINE_DATA;
  if (operation->protocol == LL128)
    room = slot / LL128_UNIT_WIRE * LL128_UNIT_DATA;
  size_t left = random_length(random, room);
  /* NCCL's kernels post empty Simple slices only in rings, and a kernel that unpacks relies on that. */
  if (unpacks && operation->protocol == SIMPLE && slices == 1 && left == 0)
    left = 16;
  /* NCCL's rule: slices are multiples of 16 bytes, and have a minimum size (slicing less is not worth its cost). */
  size_t slice = divide_up(left, 16 * (size_t)slices) * 16;
  if (slice < slot * (size_t)operation->sliceSteps / 32)
    slice = slot * (size_t)operation->sliceSteps / 32;
  for (int i = 0; i < slices; i++) {
    size_t bytes = smaller(slices == 1 ? left : slice, left);
    left -= bytes;
    if (operation->protocol == LL)
      bytes = divide_up(bytes, LL_LINE_DATA) * sizeof(ncclLLFifoLine);
    if (operation->protocol == LL128)
      bytes = divide_up(bytes, LL128_UNIT_DATA) * LL128_UNIT_WIRE;
    pieces[i] = (struct piece){operation->protocol, operation->sliceSteps, bytes, next_random(random)};
  }
  return slices;
}

#endif
