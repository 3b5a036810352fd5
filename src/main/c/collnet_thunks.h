/*
 * The entries of NCCL's collective network tables. A signature that several versions share has the number of the first
 * version.
 */
#ifndef MILLRACE_COLLNET_THUNKS_H
#define MILLRACE_COLLNET_THUNKS_H

#include "net_thunks.h"

/* Fields that are equal in all versions. The device is the same as in the network table. */
#define MILLRACE_COLLNET_COMMON                                                                       \
  .name = "Millrace", .devices = netDevices, .connect = collNetConnect,                               \
  .reduceSupport = collNetReduceSupport, .regMr = collNetRegMr, .deregMr = collNetDeregMr,            \
  .iflush = collNetIflush, .test = collNetTest, .closeColl = collNetCloseColl,                        \
  .closeListen = collNetCloseListen

ncclResult_t collNetConnect(void *handles[], int nranks, int rank, void *listenComm, void **collComm);
ncclResult_t collNetReduceSupport(ncclDataType_t dataType, ncclRedOp_t redOp, int *supported);
ncclResult_t collNetRegMr(void *collComm, void *data, size_t size, int type, void **mhandle);
ncclResult_t collNetDeregMr(void *collComm, void *mhandle);
ncclResult_t collNetIflush(void *collComm, void *data, int size, void *mhandle, void **request);
ncclResult_t collNetTest(void *request, int *done, int *size);
ncclResult_t collNetCloseColl(void *collComm);
ncclResult_t collNetCloseListen(void *listenComm);

ncclResult_t collNetInit8(ncclDebugLogger_t logFunction);
ncclResult_t collNetInit11(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
ncclResult_t collNetListen8(int dev, void *handle, void **listenComm);
ncclResult_t collNetListen11(void *ctx, int dev, void *handle, void **listenComm);

ncclResult_t collNetIallreduce8(void *collComm, void *sendData, void *recvData, int count,
                                ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                                void *recvMhandle, void **request);
ncclResult_t collNetIallgather8(void *collComm, void *sendData, int nRecvParts, ncclNetSGE_v8_t *recvParts,
                                size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
                                void *sendMhandle, void **request);
ncclResult_t collNetIreducescatter8(void *collComm, int nSendParts, ncclNetSGE_v8_t *sendParts,
                                    void *recvData, size_t bytesPerRank, size_t windowOffset,
                                    size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                    void *recvMhandle, void **request);
ncclResult_t collNetIallreduce9(void *collComm, void *sendData, void *recvData, size_t count,
                                ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                                void *recvMhandle, void **request);
ncclResult_t collNetIallgather9(void *collComm, void *sendData, int nRecvParts, ncclNetSGE_v9_t *recvParts,
                                size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
                                void *sendMhandle, void **request);
ncclResult_t collNetIreducescatter9(void *collComm, int nSendParts, ncclNetSGE_v9_t *sendParts,
                                    void *recvData, size_t bytesPerRank, size_t windowOffset,
                                    size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                    void *recvMhandle, void **request);

ncclResult_t collNetFinalize11(void *ctx);

#endif
