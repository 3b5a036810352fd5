/* The entries of NCCL's network tables. A signature that several versions share has the number of the first version. */
#ifndef MILLRACE_NET_THUNKS_H
#define MILLRACE_NET_THUNKS_H

#include "shim.h"

/*
 * Fields that are equal in all versions. All other fields stay null. NCCL calls getDeviceMr, irecvConsumed, makeVDevice
 * and setNetAttr only if they are set, and regMrDmaBuf only for devices that support it.
 */
#define MILLRACE_NET_COMMON                                                                    \
  .name = "Millrace", .devices = netDevices, .accept = netAccept, .regMr = netRegMr,           \
  .deregMr = netDeregMr, .iflush = netIflush, .test = netTest, .closeSend = netCloseSend,      \
  .closeRecv = netCloseRecv, .closeListen = netCloseListen

ncclResult_t netDevices(int *ndev);
ncclResult_t netAccept(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **recvDevComm);
ncclResult_t netRegMr(void *comm, void *data, size_t size, int type, void **mhandle);
ncclResult_t netDeregMr(void *comm, void *mhandle);
ncclResult_t netIflush(void *recvComm, int n, void **data, int *sizes, void **mhandles, void **request);
ncclResult_t netTest(void *request, int *done, int *sizes);
ncclResult_t netCloseSend(void *sendComm);
ncclResult_t netCloseRecv(void *recvComm);
ncclResult_t netCloseListen(void *listenComm);

ncclResult_t netInit(int version, void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
ncclResult_t netGetProperties(int version, int dev, void *props, const void *library);

ncclResult_t netListen8(int dev, void *handle, void **listenComm);
ncclResult_t netConnect8(int dev, void *handle, void **sendComm, ncclNetDeviceHandle_t **sendDevComm);
ncclResult_t netConnect10(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm);
ncclResult_t netListen11(void *ctx, int dev, void *handle, void **listenComm);
ncclResult_t netConnect11(void *ctx, int dev, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm);

ncclResult_t netIsend8(void *sendComm, void *data, int size, int tag, void *mhandle, void **request);
ncclResult_t netIsend9(void *sendComm, void *data, size_t size, int tag, void *mhandle, void **request);
ncclResult_t netIsend10(void *sendComm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                        void **request);
ncclResult_t netIrecv8(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles,
                       void **request);
ncclResult_t netIrecv9(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                       void **request);
ncclResult_t netIrecv10(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                        void **phandles, void **request);

ncclResult_t netFinalize11(void *ctx);

#endif
