/*
 * The profiler plugin's tables (facts: plugin/profiler/profiler_v4.h to profiler_v6.h of 2.30, profiler_v7.h of 2.31).
 * NCCL 2.27 takes v4, 2.28 v5, 2.29 v6, 2.31 v7.
 */
#ifndef MILLRACE_NCCL_PROFILER_H
#define MILLRACE_NCCL_PROFILER_H

#include "nccl/logger.h"

#include <stdbool.h>

/* Kinds of events, as bits. init returns the enabled kinds. */
typedef enum ncclProfilerEventType_t {
  ncclProfileGroup = 1 << 0,
  ncclProfileColl = 1 << 1,
  ncclProfileP2p = 1 << 2,
  ncclProfileProxyOp = 1 << 3,
  ncclProfileProxyStep = 1 << 4,
  ncclProfileProxyCtrl = 1 << 5,
  ncclProfileKernelCh = 1 << 6,
  ncclProfileNetPlugin = 1 << 7,
  ncclProfileGroupApi = 1 << 8,
  ncclProfileCollApi = 1 << 9,
  ncclProfileP2pApi = 1 << 10,
  ncclProfileKernelLaunch = 1 << 11,
  ncclProfileCeColl = 1 << 12,
  ncclProfileCeSync = 1 << 13,
  ncclProfileCeBatch = 1 << 14
} ncclProfilerEventType_t;

/* States of an event that are recorded. Only NCCL's own proxy fills the arguments of other states. */
typedef enum ncclProfilerEventState_t {
  ncclProfilerNetPluginUpdate = 21,
  ncclProfilerKernelChStop = 22
} ncclProfilerEventState_t;

/* Type and version of a network plugin's descriptor that follows with an event. */
#define NCCL_PROFILER_NET_VER_BITS 16
#define NCCL_PROFILER_NET_TYPE_IB (1U << NCCL_PROFILER_NET_VER_BITS)
#define NCCL_PROFILER_NET_TYPE_SOCK (2U << NCCL_PROFILER_NET_VER_BITS)
#define NCCL_PROFILER_NET_SOCKET_VER 1

#define ncclProfileSocket (1 << 0)

/* Data of NCCL's own Socket network about a message: op is 0 for a sent message, 1 for a received one. */
typedef struct ncclProfilerNetSock_v1_t {
  int fd;
  int op;
  size_t length;
} ncclProfilerNetSock_v1_t;

typedef struct ncclProfilerNetSockDescr_v1_t {
  uint8_t type;
  ncclProfilerNetSock_v1_t sock;
} ncclProfilerNetSockDescr_v1_t;

/* Parts of the descriptors. NCCL declares them, and the unions of them, without names. */
typedef struct ncclProfilerColl_v4_t {
  uint64_t seqNumber;
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  uint8_t nChannels;
  uint8_t nWarps;
  const char *algo;
  const char *proto;
} ncclProfilerColl_v4_t;

typedef struct ncclProfilerColl_v5_t {
  uint64_t seqNumber;
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  uint8_t nChannels;
  uint8_t nWarps;
  const char *algo;
  const char *proto;
  void *parentGroup;
} ncclProfilerColl_v5_t;

typedef struct ncclProfilerP2p_v4_t {
  const char *func;
  void *buff;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
} ncclProfilerP2p_v4_t;

typedef struct ncclProfilerP2p_v5_t {
  const char *func;
  void *buff;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
  void *parentGroup;
} ncclProfilerP2p_v5_t;

typedef struct ncclProfilerProxyOp_v4_t {
  int pid;
  uint8_t channelId;
  int peer;
  int nSteps;
  int chunkSize;
  int isSend;
} ncclProfilerProxyOp_v4_t;

typedef struct ncclProfilerProxyStep_v4_t {
  int step;
} ncclProfilerProxyStep_v4_t;

/* pTimer is the GPU's globaltimer, in nanoseconds. */
typedef struct ncclProfilerKernelCh_v4_t {
  uint8_t channelId;
  uint64_t pTimer;
} ncclProfilerKernelCh_v4_t;

typedef struct ncclProfilerNetPlugin_v4_t {
  int64_t id;
  void *data;
} ncclProfilerNetPlugin_v4_t;

typedef struct ncclProfilerGroupApi_v5_t {
  bool graphCaptured;
  int groupDepth;
} ncclProfilerGroupApi_v5_t;

typedef struct ncclProfilerCollApi_v5_t {
  const char *func;
  size_t count;
  const char *datatype;
  int root;
  void *stream;
  bool graphCaptured;
} ncclProfilerCollApi_v5_t;

typedef struct ncclProfilerP2pApi_v5_t {
  const char *func;
  size_t count;
  const char *datatype;
  void *stream;
  bool graphCaptured;
} ncclProfilerP2pApi_v5_t;

typedef struct ncclProfilerKernelLaunch_v5_t {
  void *stream;
} ncclProfilerKernelLaunch_v5_t;

/* Collectives of copy engines. */
typedef struct ncclProfilerCeColl_v6_t {
  uint64_t seqNumber;
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  const char *syncStrategy;
  bool intraBatchSync;
  uint32_t batchSize;
  uint32_t numBatches;
  uint32_t ceSeqNum;
  void *stream;
} ncclProfilerCeColl_v6_t;

typedef union ncclProfilerEvent_v4_t {
  ncclProfilerColl_v4_t coll;
  ncclProfilerP2p_v4_t p2p;
  ncclProfilerProxyOp_v4_t proxyOp;
  ncclProfilerProxyStep_v4_t proxyStep;
  ncclProfilerKernelCh_v4_t kernelCh;
  ncclProfilerNetPlugin_v4_t netPlugin;
} ncclProfilerEvent_v4_t;

typedef struct ncclProfilerEventDescr_v4_t {
  uint8_t type;
  void *parentObj;
  int rank;
  ncclProfilerEvent_v4_t event;
} ncclProfilerEventDescr_v4_t;

typedef union ncclProfilerEvent_v5_t {
  ncclProfilerGroupApi_v5_t groupApi;
  ncclProfilerCollApi_v5_t collApi;
  ncclProfilerP2pApi_v5_t p2pApi;
  ncclProfilerKernelLaunch_v5_t kernelLaunch;
  ncclProfilerColl_v5_t coll;
  ncclProfilerP2p_v5_t p2p;
  ncclProfilerProxyOp_v4_t proxyOp;
  ncclProfilerProxyStep_v4_t proxyStep;
  ncclProfilerKernelCh_v4_t kernelCh;
  ncclProfilerNetPlugin_v4_t netPlugin;
} ncclProfilerEvent_v5_t;

typedef struct ncclProfilerEventDescr_v5_t {
  uint64_t type;
  void *parentObj;
  int rank;
  ncclProfilerEvent_v5_t event;
} ncclProfilerEventDescr_v5_t;

typedef union ncclProfilerEvent_v6_t {
  ncclProfilerGroupApi_v5_t groupApi;
  ncclProfilerCollApi_v5_t collApi;
  ncclProfilerP2pApi_v5_t p2pApi;
  ncclProfilerKernelLaunch_v5_t kernelLaunch;
  ncclProfilerColl_v5_t coll;
  ncclProfilerP2p_v5_t p2p;
  ncclProfilerProxyOp_v4_t proxyOp;
  ncclProfilerProxyStep_v4_t proxyStep;
  ncclProfilerKernelCh_v4_t kernelCh;
  ncclProfilerNetPlugin_v4_t netPlugin;
  ncclProfilerCeColl_v6_t ceColl;
} ncclProfilerEvent_v6_t;

typedef struct ncclProfilerEventDescr_v6_t {
  uint64_t type;
  void *parentObj;
  int rank;
  ncclProfilerEvent_v6_t event;
} ncclProfilerEventDescr_v6_t;

typedef struct ncclProfilerCollApi_v7_t {
  const char *func;
  size_t count;
  const char *datatype;
  int root;
  void *stream;
  bool graphCaptured;
  uint64_t userTag;
} ncclProfilerCollApi_v7_t;

typedef struct ncclProfilerP2pApi_v7_t {
  const char *func;
  size_t count;
  const char *datatype;
  void *stream;
  bool graphCaptured;
  uint64_t userTag;
} ncclProfilerP2pApi_v7_t;

typedef struct ncclProfilerColl_v7_t {
  uint64_t seqNumber;
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  uint8_t nChannels;
  uint8_t nWarps;
  const char *algo;
  const char *proto;
  void *parentGroup;
  const char *kernelVariant;
  bool isSymColl;
  uint64_t userTag;
} ncclProfilerColl_v7_t;

typedef struct ncclProfilerP2p_v7_t {
  const char *func;
  void *buff;
  const char *datatype;
  size_t count;
  int peer;
  uint8_t nChannels;
  void *parentGroup;
  uint64_t userTag;
} ncclProfilerP2p_v7_t;

typedef struct ncclProfilerCeColl_v7_t {
  uint64_t seqNumber;
  const char *func;
  void const *sendBuff;
  void *recvBuff;
  size_t count;
  int root;
  const char *datatype;
  const char *syncStrategy;
  bool intraBatchSync;
  uint32_t batchSize;
  uint32_t numBatches;
  uint32_t ceSeqNum;
  void *stream;
  uint64_t userTag;
} ncclProfilerCeColl_v7_t;

/*
 * Phase of a kernel that synchronizes with its peers: 0 before they have met, 1 while it works, 2 while they meet
 * again.
 */
typedef struct ncclProfilerKernelPhase_v7_t {
  uint8_t channelId;
  uint8_t phaseId;
  const char *phaseName;
  uint64_t pTimer;
} ncclProfilerKernelPhase_v7_t;

typedef union ncclProfilerEvent_v7_t {
  ncclProfilerGroupApi_v5_t groupApi;
  ncclProfilerCollApi_v7_t collApi;
  ncclProfilerP2pApi_v7_t p2pApi;
  ncclProfilerKernelLaunch_v5_t kernelLaunch;
  ncclProfilerColl_v7_t coll;
  ncclProfilerP2p_v7_t p2p;
  ncclProfilerProxyOp_v4_t proxyOp;
  ncclProfilerProxyStep_v4_t proxyStep;
  ncclProfilerKernelCh_v4_t kernelCh;
  ncclProfilerNetPlugin_v4_t netPlugin;
  ncclProfilerCeColl_v7_t ceColl;
  ncclProfilerKernelPhase_v7_t kernelPhase;
} ncclProfilerEvent_v7_t;

typedef struct ncclProfilerEventDescr_v7_t {
  uint64_t type;
  void *parentObj;
  int rank;
  ncclProfilerEvent_v7_t event;
} ncclProfilerEventDescr_v7_t;

/* Arguments of a state; the same in v4 to v7. */
typedef struct ncclProfilerProxyStepState_v4_t {
  size_t transSize;
} ncclProfilerProxyStepState_v4_t;

typedef struct ncclProfilerProxyCtrlState_v4_t {
  int appendedProxyOps;
} ncclProfilerProxyCtrlState_v4_t;

typedef struct ncclProfilerNetPluginState_v4_t {
  void *data;
} ncclProfilerNetPluginState_v4_t;

typedef struct ncclProfilerKernelChState_v4_t {
  uint64_t pTimer;
} ncclProfilerKernelChState_v4_t;

typedef union ncclProfilerEventStateArgs_v4_t {
  ncclProfilerProxyStepState_v4_t proxyStep;
  ncclProfilerProxyCtrlState_v4_t proxyCtrl;
  ncclProfilerNetPluginState_v4_t netPlugin;
  ncclProfilerKernelChState_v4_t kernelCh;
} ncclProfilerEventStateArgs_v4_t;

typedef struct ncclProfiler_v4_t {
  const char *name;
  ncclResult_t (*init)(void **context, int *eActivationMask, const char *commName, uint64_t commHash,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v4_t *eDescr);
  ncclResult_t (*stopEvent)(void *eHandle);
  ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v4_t *eStateArgs);
  ncclResult_t (*finalize)(void *context);
} ncclProfiler_v4_t;

typedef struct ncclProfiler_v5_t {
  const char *name;
  ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v5_t *eDescr);
  ncclResult_t (*stopEvent)(void *eHandle);
  ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v4_t *eStateArgs);
  ncclResult_t (*finalize)(void *context);
} ncclProfiler_v5_t;

typedef struct ncclProfiler_v6_t {
  const char *name;
  ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v6_t *eDescr);
  ncclResult_t (*stopEvent)(void *eHandle);
  ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v4_t *eStateArgs);
  ncclResult_t (*finalize)(void *context);
} ncclProfiler_v6_t;

typedef struct ncclProfiler_v7_t {
  const char *name;
  ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName,
                       int nNodes, int nranks, int rank, ncclDebugLogger_t logfn);
  ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v7_t *eDescr);
  ncclResult_t (*stopEvent)(void *eHandle);
  ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
                                   ncclProfilerEventStateArgs_v4_t *eStateArgs);
  ncclResult_t (*finalize)(void *context);
} ncclProfiler_v7_t;

#endif
