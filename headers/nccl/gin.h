/*
 * GIN by proxy. A kernel posts descriptors to a queue for each peer, and a CPU thread executes them (facts:
 * nccl_device/gin/proxy/gin_proxy_device_host_common.h of 2.28, 2.29 and 2.30).
 */
#ifndef MILLRACE_NCCL_GIN_H
#define MILLRACE_NCCL_GIN_H

#include <stdint.h>

/* ncclNetDeviceHandle_t.netDeviceType of a handle that points to the contexts below. */
#define NCCL_NET_DEVICE_GIN_PROXY 2
/* Type of another backend. A plugin that owns the queues reports it, so that NCCL creates none. */
#define NCCL_NET_DEVICE_GIN_GDAKI 3
#define NCCL_GIN_PROXY_VERSION 100

/* Operations of a descriptor, combined by or. From 2.29: VASignal. From 2.30: Get and Flush. */
typedef enum ncclGinProxyOp_t {
  ncclGinProxyOpPut = 1,
  ncclGinProxyOpWithInline = 2,
  ncclGinProxyOpWithCounter = 4,
  ncclGinProxyOpWithSignalInc = 8,
  ncclGinProxyOpWithSignalAdd = 16,
  ncclGinProxyOpVASignal = 32,
  ncclGinProxyOpGet = 64,
  ncclGinProxyOpFlush = 128
} ncclGinProxyOp_t;

/* Contents of a descriptor's words. Two words serve as source, as value, or as a signal's address. */
typedef enum ncclGinProxyGfdQwordIdx_t {
  ncclGinProxyGfdHeader = 0,
  ncclGinProxyGfdInlineLow = 1,
  ncclGinProxyGfdInlineHigh = 2,
  ncclGinProxyGfdSrcOff = 1,
  ncclGinProxyGfdSrcHandle = 2,
  ncclGinProxyGfdVASignalOff = 1,
  ncclGinProxyGfdVASignalHandle = 2,
  ncclGinProxyGfdDstOff = 3,
  ncclGinProxyGfdDstHandle = 4,
  ncclGinProxyGfdCompletion = 5,
  ncclGinProxyGfdSignalVal = 6,
  ncclGinProxyGfdHeaderExt = 7
} ncclGinProxyGfdQwordIdx_t;

/* --- bits of those words; bit 0 of every word shows that the word is complete -------------- */

#define MILLRACE_GIN_FLAG 1
/* Offsets and handles occupy the other 63 bits. */
#define MILLRACE_GIN_ADDRESS_SHIFT 1
/* Header. In 2.28 and 2.29 it contains the operation, in 2.30 the format's version. */
#define MILLRACE_GIN_HEADER_OP_SHIFT 1
#define MILLRACE_GIN_HEADER_OP_BITS 6
#define MILLRACE_GIN_HEADER_VERSION_SHIFT 1
#define MILLRACE_GIN_HEADER_VERSION_BITS 4
#define MILLRACE_GIN_HEADER_SIZE_SHIFT 7
/* HeaderExt of 2.30. */
#define MILLRACE_GIN_EXT_OP_SHIFT 8
#define MILLRACE_GIN_EXT_OP_BITS 16
/* InlineLow and InlineHigh: bits 0 to 47 of the value, then bits 48 to 63. */
#define MILLRACE_GIN_INLINE_SHIFT 8
#define MILLRACE_GIN_INLINE_LOW_BITS 48
#define MILLRACE_GIN_INLINE_HIGH_BITS 16
/* Completion of 2.28. */
#define MILLRACE_GIN_V28_COUNTER_SHIFT 8
#define MILLRACE_GIN_V28_COUNTER_BITS 16
#define MILLRACE_GIN_V28_SIGNAL_SHIFT 24
#define MILLRACE_GIN_V28_SIGNAL_BITS 16
#define MILLRACE_GIN_V28_VALUE_LOW_SHIFT 40
/* Completion of 2.29 and 2.30. */
#define MILLRACE_GIN_COUNTER_SHIFT 1
#define MILLRACE_GIN_COUNTER_BITS 23
#define MILLRACE_GIN_SIGNAL_SHIFT 24
#define MILLRACE_GIN_SIGNAL_BITS 24
#define MILLRACE_GIN_VALUE_LOW_SHIFT 48
/* Bits 0 to 15 of a signal's value are in Completion, bits 16 to 63 in SignalVal. */
#define MILLRACE_GIN_VALUE_LOW_BITS 16
#define MILLRACE_GIN_VALUE_HIGH_SHIFT 8
#define MILLRACE_GIN_VALUE_HIGH_BITS 48

/*
 * Version in the header of 2.30, since 2.30.5 and before. Descriptors of 2.30.3 and 2.30.4 have no strong signals.
 * Their contexts have 48 bytes (backend version 1).
 */
#define NCCL_GIN_PROXY_GFD_VERSION 2
#define MILLRACE_GIN_GFD_VERSION_V23003 1

/* 2.28 and 2.29. */
typedef struct ncclGinProxyGfd_v1_t {
  uint64_t qword[8];
} ncclGinProxyGfd_v1_t;

/* 2.30. */
typedef struct ncclGinProxyGfd_v2_t {
  uint64_t qword[16];
} __attribute__((aligned(16))) ncclGinProxyGfd_v2_t;

/* A context as the kernel reads it. It has queues of queueSize descriptors, and indices and gets by peer. */
typedef struct ncclGinProxyGpuCtx_v1_t {
  int nranks;
  uint32_t queueSize;
  void *queues;
  uint32_t *pis;
  uint32_t *cis;
  uint64_t *counters;
  uint64_t *signals;
} ncclGinProxyGpuCtx_v1_t;

/* 2.30.5. A signal is reset by storing its current value in signalOffsets. */
typedef struct ncclGinProxyGpuCtx_v2_t {
  int nranks;
  uint32_t queueSize;
  void *queues;
  uint32_t *pis;
  uint32_t *cis;
  uint64_t *counters;
  uint64_t *signals;
  uint64_t *signalOffsets;
  uint32_t *lastIssuedGet;
  uint32_t *lastVisibleGet;
} ncclGinProxyGpuCtx_v2_t;

#endif
