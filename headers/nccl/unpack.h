/*
 * The UNPACK device. The kernel itself gathers a slice from a bounce buffer, by a list of pieces (facts:
 * device/network/unpack/unpack_defs.h of 2.28, the same in 2.30).
 */
#ifndef MILLRACE_NCCL_UNPACK_H
#define MILLRACE_NCCL_UNPACK_H

#include <stdint.h>

#define NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH 16
#define NET_UNPACK_MAX_SLICE_SIZE 4194304
#define SLICE_PAGE_SIZE 4096
#define NET_UNPACK_MAX_SLICE_PAGES 2048

/* One piece: len bytes from src_off of the bounce buffer to dst_off of the slice. */
typedef struct loadMetaPiece {
  uint32_t src_off;
  uint32_t len;
  uint64_t dst_off;
} loadMetaPiece;

typedef union loadMeta {
  uint64_t r64[2];
  loadMetaPiece piece;
} __attribute__((aligned(16))) loadMeta;

/* A ring of slices: their pieces, and then the number of pieces of each. */
typedef struct netUnpackMeta {
  loadMeta mem[NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH][NET_UNPACK_MAX_SLICE_PAGES];
  uint64_t cnt[NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH];
} __attribute__((aligned(16))) netUnpackMeta;

/*
 * Target of ncclNetDeviceHandle_t.handle. The kernel adds 1 to its copy of head before each slice and stores it when
 * the operation ends.
 */
typedef struct unpackNetDeviceHandle {
  netUnpackMeta *meta;
  void *bounce_buf;
  uint64_t head;
} unpackNetDeviceHandle;

#endif
