/* The network plugin's table, version 10: a configuration per connection, profiler handles
 * (facts: plugin/net/net_v10.h of 2.28). */
#ifndef MILLRACE_NCCL_NET_V10_H
#define MILLRACE_NCCL_NET_V10_H

#include "nccl/net_v9.h"

typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetProperties_v9_t ncclNetProperties_v10_t;

typedef struct ncclNetCommConfig_v10_t {
  int trafficClass;
} ncclNetCommConfig_v10_t;

typedef struct ncclNet_v10_t {
  const char *name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t *props);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  ncclResult_t (*connect)(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm);
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **recvDevComm);
  ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                              int fd, void **mhandle);
  ncclResult_t (*deregMr)(void *comm, void *mhandle);
  /* phandle and phandles: NCCL's profiler events, which are parents of the plugin's events. */
  ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle,
                        void *phandle, void **request);
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags,
                        void **mhandles, void **phandles, void **request);
  ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes, void **mhandles,
                         void **request);
  ncclResult_t (*test)(void *request, int *done, int *sizes);
  ncclResult_t (*closeSend)(void *sendComm);
  ncclResult_t (*closeRecv)(void *recvComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dptr_mhandle);
  ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
  ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v10_t *props);
} ncclNet_v10_t;

typedef ncclNetSGE_v9_t ncclNetSGE_v10_t;

/*
 * The collective network's table, which NCCL looks for in the same library. All ranks make the same calls in the same
 * order.
 */
typedef struct ncclCollNet_v10_t {
  const char *name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t *props);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  /* Receives the handles of all ranks; may wait for them. */
  ncclResult_t (*connect)(void *handles[], int nranks, int rank, void *listenComm, void **collComm);
  ncclResult_t (*reduceSupport)(ncclDataType_t dataType, ncclRedOp_t redOp, int *supported);
  ncclResult_t (*regMr)(void *collComm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*regMrDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                              void **mhandle);
  ncclResult_t (*deregMr)(void *collComm, void *mhandle);
  /* *request null: NCCL tries again later. */
  ncclResult_t (*iallreduce)(void *collComm, void *sendData, void *recvData, size_t count,
                             ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                             void *recvMhandle, void **request);
  /*
   * The window lies in the parts of all ranks, which follow each other. sendData is the start of this rank's part of
   * the window.
   */
  ncclResult_t (*iallgather)(void *collComm, void *sendData, int nRecvParts,
                             ncclNetSGE_v10_t *recvParts, size_t bytesPerRank, size_t windowOffset,
                             size_t windowBytes, void *sendMhandle, void **request);
  ncclResult_t (*ireducescatter)(void *collComm, int nSendParts, ncclNetSGE_v10_t *sendParts,
                                 void *recvData, size_t bytesPerRank, size_t windowOffset,
                                 size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                 void *recvMhandle, void **request);
  ncclResult_t (*iflush)(void *collComm, void *data, int size, void *mhandle, void **request);
  ncclResult_t (*test)(void *request, int *done, int *size);
  ncclResult_t (*closeColl)(void *collComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_v10_t *props);
} ncclCollNet_v10_t;

#endif
