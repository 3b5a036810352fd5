/* GIN descriptors that kernels of NCCL 2.30 post, and the kernels' comparison of counters. */
#ifndef MILLRACE_TEST_GIN_QUEUE_H
#define MILLRACE_TEST_GIN_QUEUE_H

#include "nccl/gin.h"

#include <stddef.h>
#include <stdint.h>

/* Compares as NCCL does: the numbers wrap. */
static inline int gin_reached(uint64_t least, uint64_t value) {
  return value - least <= UINT64_MAX / 2;
}

/* Posts a put within one window that adds 1 to a signal. Returns 0 if the queue is full. */
static inline int gin_put(ncclGinProxyGpuCtx_v2_t *context, uint64_t window, int peer, uint64_t source, uint64_t target,
                          size_t bytes, int signal) {
  uint64_t words[16] = {0};
  uint32_t index = context->pis[peer];
  if (index - __atomic_load_n(&context->cis[peer], __ATOMIC_ACQUIRE) >= context->queueSize)
    return 0;
  context->pis[peer] = index + 1;
  words[ncclGinProxyGfdHeader] = (uint64_t)bytes << MILLRACE_GIN_HEADER_SIZE_SHIFT |
                                 (uint64_t)NCCL_GIN_PROXY_GFD_VERSION << MILLRACE_GIN_HEADER_VERSION_SHIFT;
  words[ncclGinProxyGfdHeaderExt] = (uint64_t)(ncclGinProxyOpPut | ncclGinProxyOpWithSignalInc)
                                    << MILLRACE_GIN_EXT_OP_SHIFT;
  words[ncclGinProxyGfdSrcHandle] = words[ncclGinProxyGfdDstHandle] = window << MILLRACE_GIN_ADDRESS_SHIFT;
  words[ncclGinProxyGfdSrcOff] = source << MILLRACE_GIN_ADDRESS_SHIFT;
  words[ncclGinProxyGfdDstOff] = target << MILLRACE_GIN_ADDRESS_SHIFT;
  words[ncclGinProxyGfdCompletion] =
      (uint64_t)signal << MILLRACE_GIN_SIGNAL_SHIFT | 1ull << MILLRACE_GIN_VALUE_LOW_SHIFT;
  ncclGinProxyGfd_v2_t *place =
      (ncclGinProxyGfd_v2_t *)context->queues + (size_t)peer * context->queueSize + (index & (context->queueSize - 1));
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  for (int i = 0; i < 16; i++)
    __atomic_store_n(&place->qword[i], words[i] | MILLRACE_GIN_FLAG, __ATOMIC_RELAXED);
  return 1;
}

#endif
