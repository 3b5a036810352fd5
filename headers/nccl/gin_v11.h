/*
 * The GIN plugin's table, version 11, of NCCL 2.28, for networking that kernels start (facts: plugin/net/net_v11.h and
 * gin/gin_host.cc of 2.28).
 *
 * If getProperties of a plugin reports a type other than NCCL_NET_DEVICE_GIN_PROXY, the plugin creates the contexts
 * that kernels post to (createContext). NCCL then never calls iput, iputSignal and test.
 */
#ifndef MILLRACE_NCCL_GIN_V11_H
#define MILLRACE_NCCL_GIN_V11_H

#include <stdbool.h>

#include "nccl/net_v11.h"

typedef struct ncclGin_v11_t {
  const char *name;
  ncclResult_t (*init)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t *props);
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
  /* Returns when all ranks are connected. ctx may be null in 2.28. */
  ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listenComm,
                          void **collComm);
  ncclResult_t (*createContext)(void *collComm, int nSignals, int nCounters, void **ginCtx,
                                ncclNetDeviceHandle_t **devHandle);
  /*
   * Collective: the n-th registration of a group is the same window on all its ranks. Kernels identify the window by
   * ginHandle.
   */
  ncclResult_t (*regMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags,
                           void **mhandle, void **ginHandle);
  ncclResult_t (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                                 uint64_t mrFlags, void **mhandle, void **ginHandle);
  ncclResult_t (*deregMrSym)(void *collComm, void *mhandle);
  ncclResult_t (*destroyContext)(void *ginCtx);
  ncclResult_t (*closeColl)(void *collComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*iput)(void *collComm, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff,
                       void *dstMhandle, uint32_t rank, void **request);
  ncclResult_t (*iputSignal)(void *collComm, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff,
                             void *dstMhandle, uint32_t rank, uint64_t signalOff, void *signalMhandle,
                             uint64_t signalValue, uint32_t signalOp, void **request);
  ncclResult_t (*test)(void *collComm, void *request, int *done);
  /* Null if devHandle->needsProxyProgress is 0. */
  ncclResult_t (*ginProgress)(void *collComm);
  /* Called with every query of a communicator's state, perhaps with a null ginCtx. */
  ncclResult_t (*queryLastError)(void *ginCtx, bool *hasError);
  ncclResult_t (*finalize)(void *ctx);
} ncclGin_v11_t;

#endif
