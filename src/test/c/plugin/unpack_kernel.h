/*
 * A receiving kernel's part of UNPACK, as in NCCL's kernels. Warps take pieces in turn, and use the widest loads that
 * the alignment of both sides of a piece allows.
 */
#ifndef MILLRACE_TEST_UNPACK_KERNEL_H
#define MILLRACE_TEST_UNPACK_KERNEL_H

#include "host.h"
#include "nccl/unpack.h"

#define WARPS 16
#define WARP_PIECES 4
#define LOAD_BYTES 16

static inline int host_unpacks(void) {
  const char *choice = getenv("MILLRACE_UNPACK");
  return choice && strcmp(choice, "0") != 0;
}

static inline uint64_t pieces_per_warp(size_t bytes) {
  uint64_t pieces = ((bytes + SLICE_PAGE_SIZE - 1) / SLICE_PAGE_SIZE + WARPS - 1) / WARPS;
  while (pieces > WARP_PIECES)
    pieces = (pieces + 1) / 2;
  return pieces;
}

static inline void copy_piece(const char *bounce, char *slot, const loadMetaPiece *piece) {
  const volatile char *from = bounce + piece->src_off;
  char *to = slot + piece->dst_off;
  uint64_t common = (piece->src_off | piece->dst_off) % LOAD_BYTES;
  size_t width = common ? (size_t)(common & -common) : LOAD_BYTES;
  size_t whole = piece->len / LOAD_BYTES * LOAD_BYTES, at = 0;
  for (; at < whole; at += width)
    __builtin_memcpy(to + at, (const char *)from + at, width);
  for (; at < piece->len; at++)
    to[at] = from[at];
}

/* Runs every warp, one after the other. */
static inline void unpack(const unpackNetDeviceHandle *handle, uint64_t head, char *slot, size_t bytes) {
  uint64_t slice = head % NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH;
  uint64_t count = __atomic_load_n(&handle->meta->cnt[slice], __ATOMIC_RELAXED);
  uint64_t each = pieces_per_warp(bytes);
  for (uint64_t warp = 0; warp < WARPS; warp++)
    for (uint64_t start = warp * each; start < count; start += WARPS * each)
      for (uint64_t i = start; i < count && i < start + each; i++)
        copy_piece(handle->bounce_buf, slot, &handle->meta->mem[slice][i].piece);
}

#endif
