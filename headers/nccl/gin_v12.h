/* The GIN plugin's table, version 12, of NCCL 2.29: several contexts behind one handle
 * (facts: plugin/gin/gin_v12.h of 2.29). */
#ifndef MILLRACE_NCCL_GIN_V12_H
#define MILLRACE_NCCL_GIN_V12_H

#include "nccl/gin_v11.h"

typedef struct ncclGin_v12_t {
  const char *name;
  ncclResult_t (*init)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, int nConnections, int queueDepth,
                          void *listenComm, void **collComm);
  ncclResult_t (*createContext)(void *collComm, int nSignals, int nCounters, int nContexts, void **ginCtx,
                                ncclNetDeviceHandle_t **devHandle);
  ncclResult_t (*regMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags,
                           void **mhandle, void **ginHandle);
  ncclResult_t (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                                 uint64_t mrFlags, void **mhandle, void **ginHandle);
  ncclResult_t (*deregMrSym)(void *collComm, void *mhandle);
  ncclResult_t (*destroyContext)(void *ginCtx);
  ncclResult_t (*closeColl)(void *collComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*iput)(void *collComm, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff,
                       void *dstMhandle, uint32_t rank, int connectionId, void **request);
  ncclResult_t (*iputSignal)(void *collComm, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff,
                             void *dstMhandle, uint32_t rank, uint64_t signalOff, void *signalMhandle,
                             uint64_t signalValue, uint32_t signalOp, int connectionId, void **request);
  ncclResult_t (*test)(void *collComm, void *request, int *done);
  ncclResult_t (*ginProgress)(void *collComm);
  ncclResult_t (*queryLastError)(void *ginCtx, bool *hasError);
  ncclResult_t (*finalize)(void *ctx);
} ncclGin_v12_t;

#endif
