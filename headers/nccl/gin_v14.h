/*
 * The GIN plugin's table, version 14, since NCCL 2.30.5. It contains the operations that kernels start. Operations that
 * the host starts are in rma_v14.h (facts: plugin/gin/gin_v14.h of 2.30.7).
 */
#ifndef MILLRACE_NCCL_GIN_V14_H
#define MILLRACE_NCCL_GIN_V14_H

#include <stdbool.h>

#include "nccl/net_v12.h"

typedef struct ncclGinProperties_v14_t {
  bool supportsStrongSignals;
  bool supportsVASignals;
} ncclGinProperties_v14_t;

typedef struct ncclGinConfig_v14_t {
  int nSignals;
  int nCounters;
  int nContexts;
  int queueDepth;
  int trafficClass;
  int backendVersion;
  int rankStride;
} ncclGinConfig_v14_t;

typedef struct ncclGin_v14_t {
  const char *name;
  ncclResult_t (*init)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getGinProperties)(ncclGinProperties_v14_t *ginProps);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t *props);
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listenComm,
                          void **collComm);
  ncclResult_t (*createContext)(void *collComm, ncclGinConfig_v14_t *config, void **ginCtx,
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
} ncclGin_v14_t;

#endif
