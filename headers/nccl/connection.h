/*
 * The memory that a connection's kernel and its proxy share, and the layout of its buffers (facts: comm.h,
 * collectives.h, device.h, init.cc of 2.28 and 2.31).
 */
#ifndef MILLRACE_NCCL_CONNECTION_H
#define MILLRACE_NCCL_CONNECTION_H

#include <stdint.h>
#include <sys/types.h>

/* Number of slots in a connection's buffers. A step s uses slot s % NCCL_STEPS. */
#define NCCL_STEPS 8
/* Number of slots in the buffers that all peers of a channel share (mode OFFSET). */
#define NCCL_SHARED_STEPS 16

#define CACHE_LINE_SIZE 128
#define MEM_ALIGN 4096

/* ncclConnFifo.mode: location of the slot's data. */
#define NCCL_MODE_NORMAL 0 /* in the connection's own buffer */
#define NCCL_MODE_OFFSET 1 /* at an offset of the shared buffer */
#define NCCL_MODE_PTR 2    /* at a pointer, in a buffer the user registered */

/* Since 2.31.2. */
typedef struct ncclConnFifo {
  int mode;
  ssize_t offset;
  ssize_t size;
  void *ptr;
} ncclConnFifo;

/* Up to 2.30. */
typedef struct ncclConnFifo_v28 {
  int mode;
  int offset;
  ssize_t size;
  void *ptr;
} ncclConnFifo_v28;

/* A sender's side. head: number of steps that the proxy has freed. */
typedef struct ncclSendMem {
  uint64_t head;
  char pad1[CACHE_LINE_SIZE - sizeof(uint64_t)];
  void *ptrExchange;
  uint64_t redOpArgExchange[2];
  char pad2[CACHE_LINE_SIZE - sizeof(void *) - 2 * sizeof(uint64_t)];
  int offsFifo[NCCL_STEPS];
  char pad3[MEM_ALIGN - 2 * CACHE_LINE_SIZE - NCCL_STEPS * sizeof(int)];
} ncclSendMem;

/* A receiver's side, and the sender's FIFO. tail: number of steps that hold data. */
typedef struct ncclRecvMem {
  uint64_t tail;
  char pad1[CACHE_LINE_SIZE - sizeof(uint64_t)];
  ncclConnFifo connFifo[NCCL_STEPS];
  int flush;
  char pad2[MEM_ALIGN - CACHE_LINE_SIZE - NCCL_STEPS * sizeof(ncclConnFifo) - sizeof(int)];
} ncclRecvMem;

typedef struct ncclRecvMem_v28 {
  uint64_t tail;
  char pad1[CACHE_LINE_SIZE - sizeof(uint64_t)];
  ncclConnFifo_v28 connFifo[NCCL_STEPS];
  int flush;
  char pad2[MEM_ALIGN - CACHE_LINE_SIZE - NCCL_STEPS * sizeof(ncclConnFifo_v28) - sizeof(int)];
} ncclRecvMem_v28;

/* --- LL: every 8 bytes carry 4 of data and a flag ---------------------------------------- */

typedef struct ncclLLFifoWords {
  uint32_t data1;
  uint32_t flag1;
  uint32_t data2;
  uint32_t flag2;
} ncclLLFifoWords;

typedef union ncclLLFifoLine {
  ncclLLFifoWords words;
  uint64_t v[2];
} __attribute__((aligned(16))) ncclLLFifoLine;

#define NCCL_LL_LINES_PER_THREAD 8
#define NCCL_LL_MAX_NTHREADS 512
/* A step whose masked number equals the mask rewrites its whole slot, so that old flags vanish. */
#define NCCL_LL_CLEAN_MASK 0x7ffffff8

/* --- LL128: 120 bytes of data, then a flag ----------------------------------------------- */

#define NCCL_LL128_LINESIZE 128
#define NCCL_LL128_LINEELEMS 16
#define NCCL_LL128_DATAELEMS 15
#define NCCL_LL128_MAX_NTHREADS 640
#define NCCL_LL128_ELEMS_PER_THREAD 120
#define NCCL_LL128_SHMEM_ELEMS_PER_THREAD 8

/* --- default sizes of a connection's buffers ---------------------------------------------- */

#define DEFAULT_LL_BUFFSIZE \
  (NCCL_LL_LINES_PER_THREAD * NCCL_LL_MAX_NTHREADS * NCCL_STEPS * (int)sizeof(ncclLLFifoLine))
#define DEFAULT_LL128_BUFFSIZE \
  (NCCL_LL128_ELEMS_PER_THREAD * NCCL_LL128_MAX_NTHREADS * NCCL_STEPS * (int)sizeof(uint64_t))
#define DEFAULT_BUFFSIZE 4194304

/* --- Simple: steps of a slice (one size, one tail) and of a chunk ------------------------ */

#define ALLREDUCE_SLICESTEPS 2
#define ALLREDUCE_CHUNKSTEPS 4
#define ALLGATHER_SLICESTEPS 2
#define ALLGATHER_CHUNKSTEPS 4
#define REDUCESCATTER_SLICESTEPS 2
#define REDUCESCATTER_CHUNKSTEPS 4
#define ALLTOALL_SLICESTEPS 1
#define ALLTOALL_CHUNKSTEPS 1
#define BROADCAST_SLICESTEPS 1
#define BROADCAST_CHUNKSTEPS 1
#define REDUCE_SLICESTEPS 1
#define REDUCE_CHUNKSTEPS 1
#define GATHER_SLICESTEPS 1
#define GATHER_CHUNKSTEPS 1
#define SCATTER_SLICESTEPS 1
#define SCATTER_CHUNKSTEPS 1
#define NCCL_MAX_SLICE_PER_CHUNK 2

#endif
