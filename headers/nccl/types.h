/* NCCL's public types and constants, as of 2.30.7 (facts: nccl.h of that release). */
#ifndef MILLRACE_NCCL_TYPES_H
#define MILLRACE_NCCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* The release that these declarations describe. ncclGetVersion() returns the loaded release. */
#define NCCL_MAJOR 2
#define NCCL_MINOR 30
#define NCCL_PATCH 7
#define NCCL_VERSION_CODE 23007

typedef enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,
  ncclNumResults = 9
} ncclResult_t;

typedef enum ncclDataType_t {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/* Values from ncclNumOps to ncclMaxRedOp are operators from ncclRedOpCreate...(). */
typedef enum ncclRedOp_t {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/*
 * Location of the factor of ncclRedOpCreatePreMulSum. It determines the time of its read: by the kernels while they
 * run, or before the creating call returns.
 */
typedef enum ncclScalarResidence_t {
  ncclScalarDevice = 0,
  ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

/* Opaque to callers. A stream is a CUDA stream, which is only passed on here. */
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;
typedef struct CUstream_st *cudaStream_t;

/* Bytes that rank 0 creates and the other ranks need before they can join. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* "Not set": NCCL chooses. The value is INT_MIN. */
#define NCCL_CONFIG_UNDEF_INT (-2147483647 - 1)
#define NCCL_UNDEF_FLOAT -1.0f

/* The color of a rank that takes part in no communicator of a split. */
#define NCCL_SPLIT_NOCOLOR -1

/* Flags of ncclCommWindowRegister, and the alignment of a symmetric window's base. */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

/* ncclConfig_t.CTAPolicy: limit for the GPU thread blocks that NCCL uses. */
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* Flags of ncclCommShrink (ABORT ends the parent's operations first) and ncclCommRevoke. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00

/* Flag of ncclCommSuspend: frees device memory that NCCL can allocate again. */
#define NCCL_SUSPEND_MEM 0x01

/* Statistics of ncclCommMemStats, in bytes. ncclStatGpuMemSuspended is 0 or 1. */
typedef enum ncclCommMemStat_t {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/*
 * The first three fields describe the layout of the rest: sizeof(ncclConfig_t), this magic number, and
 * NCCL_VERSION_CODE. NCCL chooses the values of fields that keep their UNDEF value (0 for the two strings).
 */
#define MILLRACE_NCCL_CONFIG_MAGIC 0xcafebeefU
typedef struct ncclConfig_t {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char *netName;
  int splitShare;
  int trafficClass;
  const char *commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
} ncclConfig_t;

/* One condition of ncclWaitSignal: a number of signals from a peer. */
typedef struct ncclWaitSignalDesc_t {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/* Result of ncclGroupSimulateEnd: the estimated time of the group, in microseconds. */
#define MILLRACE_NCCL_SIM_INFO_MAGIC 0x74685283
typedef struct ncclSimInfo_t {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;

#endif
