/*
 * The memory that a connection's kernel and its proxy share in RCCL, AMD's NCCL, where it differs from NCCL's. Read in
 * whole trees of RCCL 2.27.7 and 2.28.3 (meta-pytorch/torchcomms 59426ba4, comms/rcclx), and in single files of 2.30.4
 * and later releases of 2.30 (ROCm/rocm-systems and copies of it, projects/rccl/src). All three have the same values:
 *
 * - Size of a cache line: 64 (include/comm.h, line 46 of 2.27.7 and line 54 of 2.28.3). NCCL has 128.
 * - Structures: include/comm.h, lines 55 and 69 of 2.27.7. ncclConnFifo: include/collectives.h.
 * - Line of LL128: 64 bytes (include/device.h, line 144 of 2.27.7 and line 164 of 2.28.3). 2.30 has lines of 128 bytes on
 *   the GPU type gfx1250.
 * - LL: as in NCCL, with 256 threads: a buffer of 8 * 256 * 8 * 16 = 262,144 bytes (rcclSetDefaultBuffSizes in
 *   rccl_wrap.cc, line 436 of 2.27.7 and lines 719 to 725 of 2.28.3).
 * - LL128: a buffer of 28 * 256 * 8 * 8 = 458,752 bytes (the same function). A step is a multiple of 8 words for each
 *   thread of a warp: 4,096 bytes on GPUs with 64 threads in a warp (gfx9), else 2,048 (device/prims_ll128.h, waitSend).
 * - Connections for send and receive have index 2 and not 1 (NCCL_CONN_IDX_P2P_NET). A plugin does not see the index.
 *
 * In protocol LL128, a kernel stores tail before all its lines are visible to the CPU: postSend() of prims_ll128.h only
 * orders the stores of one warp. RCCL's own proxy therefore checks the flags of all lines (transport/net.cc, line 1470 of
 * 2.28.3), because it has been told that the step is an LL128 step.
 */
#ifndef MILLRACE_NCCL_RCCL_H
#define MILLRACE_NCCL_RCCL_H

#include "nccl/connection.h"

/* ncclSendMem. */
typedef struct rcclSendMem {
  uint64_t head;
  char pad1[56];
  void *ptrExchange;
  uint64_t redOpArgExchange[2];
  char pad2[40];
  int offsFifo[NCCL_STEPS];
  char pad3[3936];
} rcclSendMem;

/* ncclRecvMem. The entries are those of NCCL up to 2.30. */
typedef struct rcclRecvMem {
  uint64_t tail;
  char pad1[56];
  ncclConnFifo_v28 connFifo[NCCL_STEPS];
  int flush;
  char pad2[3836];
} rcclRecvMem;

typedef struct rcclLL128Line {
  uint64_t data[7];
  uint64_t flag;
} rcclLL128Line;

#endif
