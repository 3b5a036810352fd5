/* The network plugin's table, version 8: a device handle per connection
 * (facts: plugin/net/net_v8.h of 2.28). */
#ifndef MILLRACE_NCCL_NET_V8_H
#define MILLRACE_NCCL_NET_V8_H

#include "nccl/net_common.h"

typedef struct ncclNetProperties_v8_t {
  char *name;
  char *pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed; /* Mbit/s */
  int port;
  float latency; /* microseconds */
  int maxComms;
  int maxRecvs;
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v8_t;

typedef struct ncclNet_v8_t {
  const char *name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t *props);
  /* Fills handle, at most NCCL_NET_HANDLE_MAXSIZE bytes, with the data that a peer needs to connect. */
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  /* Must not block: success with *sendComm null means "call again"; likewise accept. */
  ncclResult_t (*connect)(int dev, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm);
  /* On entry *recvDevComm shows whether NCCL accepts a device handle; likewise connect. */
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **recvDevComm);
  /* comm comes from connect or accept; type is one of NCCL_PTR_... */
  ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset,
                              int fd, void **mhandle);
  ncclResult_t (*deregMr)(void *comm, void *mhandle);
  /* *request null: NCCL tries again later. Sends and receives with equal tags keep their order. */
  ncclResult_t (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle,
                        void **request);
  /* Posts n buffers at once; test then fills n sizes. */
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles,
                        void **request);
  /* Makes received data visible to the GPU. sizes are ints in every version. */
  ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes, void **mhandles,
                         void **request);
  ncclResult_t (*test)(void *request, int *done, int *sizes);
  ncclResult_t (*closeSend)(void *sendComm);
  ncclResult_t (*closeRecv)(void *recvComm);
  ncclResult_t (*closeListen)(void *listenComm);
  /* Only called on connections that have a device handle; may be null. */
  ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dptr_mhandle);
  /* Reports that the device has consumed the data of a request; may be null. */
  ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
} ncclNet_v8_t;

/* Contiguous memory of a collective's window. */
typedef struct ncclNetSGE_v8_t {
  void *mhandle;
  void *address;
  uint32_t size;
} ncclNetSGE_v8_t;

/*
 * The collective network's table, which NCCL looks for in the same library. All ranks make the same calls in the same
 * order.
 */
typedef struct ncclCollNet_v8_t {
  const char *name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t *props);
  ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
  /* Receives the handles of all ranks; may wait for them. */
  ncclResult_t (*connect)(void *handles[], int nranks, int rank, void *listenComm, void **collComm);
  ncclResult_t (*reduceSupport)(ncclDataType_t dataType, ncclRedOp_t redOp, int *supported);
  ncclResult_t (*regMr)(void *collComm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*regMrDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                              void **mhandle);
  ncclResult_t (*deregMr)(void *collComm, void *mhandle);
  /* *request null: NCCL tries again later. */
  ncclResult_t (*iallreduce)(void *collComm, void *sendData, void *recvData, int count,
                             ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                             void *recvMhandle, void **request);
  /*
   * The window lies in the parts of all ranks, which follow each other. sendData is the start of this rank's part of
   * the window.
   */
  ncclResult_t (*iallgather)(void *collComm, void *sendData, int nRecvParts,
                             ncclNetSGE_v8_t *recvParts, size_t bytesPerRank, size_t windowOffset,
                             size_t windowBytes, void *sendMhandle, void **request);
  ncclResult_t (*ireducescatter)(void *collComm, int nSendParts, ncclNetSGE_v8_t *sendParts,
                                 void *recvData, size_t bytesPerRank, size_t windowOffset,
                                 size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                 void *recvMhandle, void **request);
  ncclResult_t (*iflush)(void *collComm, void *data, int size, void *mhandle, void **request);
  ncclResult_t (*test)(void *request, int *done, int *size);
  ncclResult_t (*closeColl)(void *collComm);
  ncclResult_t (*closeListen)(void *listenComm);
} ncclCollNet_v8_t;

#endif
