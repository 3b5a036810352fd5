/*
 * The GIN plugin's table, version 15: a context's peers, and the signals of kernels' barriers. Three forms exist in
 * public sources, and a build of a release decides. One form equals v14. One has v14's properties, and connect without
 * abortFlag (commit 7217a581). The third one is below. Its barrierOptions and abortFlag are inferred from an adapter
 * for v14. All forms have the configuration's fields up to backendVersion at the same offsets.
 */
#ifndef MILLRACE_NCCL_GIN_V15_H
#define MILLRACE_NCCL_GIN_V15_H

#include <stdbool.h>

#include "nccl/net_v12.h"

typedef enum ncclGinBarrierOptions_t {
  NCCL_GIN_BARRIER_DEFAULT = 0,
  NCCL_GIN_BARRIER_SIGNAL_EFFICIENT = 1
} ncclGinBarrierOptions_t;

typedef struct ncclGinProperties_v15_t {
  bool supportsStrongSignals;
  bool supportsVASignals;
  ncclGinBarrierOptions_t barrierOptions;
} ncclGinProperties_v15_t;

typedef struct ncclGinConfig_v15_t {
  int nSignals;
  int nCounters;
  int nContexts;
  int queueDepth;
  int trafficClass;
  int backendVersion;
  int *peerArray;
  int peerArrayCount;
} ncclGinConfig_v15_t;

typedef struct ncclGin_v15_t {
  const char *name;
  ncclResult_t (*init)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getGinProperties)(ncclGinProperties_v15_t *ginProps);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t *props);
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listenComm,
                          void **collComm, volatile uint32_t *abortFlag);
  ncclResult_t (*createContext)(void *collComm, ncclGinConfig_v15_t *config, void **ginCtx,
                                ncclNetDeviceHandle_t **devHandle);
  ncclResult_t (*regMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags,
                           void **mhandle, void **ginHandle);
  ncclResult_t (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                                 uint64_t mrFlags, void **mhandle, void **ginHandle);
  ncclResult_t (*deregMrSym)(void *collComm, void *mhandle);
  ncclResult_t (*destroyContext)(void *ginCtx);
  ncclResult_t (*closeColl)(void *collComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*ginProgress)(void *ginCtx);
  ncclResult_t (*queryLastError)(void *ginCtx, bool *hasError);
  ncclResult_t (*finalize)(void *ctx);
} ncclGin_v15_t;

#endif
