/*
 * Forwards the operations of NCCL's collective network tables to Java. For each communicator, NCCL initializes the
 * network table before the tables of this file, and also finalizes the network table first. The functions in this file
 * therefore open nothing.
 */
#include "collnet_thunks.h"

ncclResult_t collNetInit8(ncclDebugLogger_t logFunction) {
  return millraceStart(logFunction);
}

ncclResult_t collNetInit11(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction) {
  (void)commId;
  *ctx = (void *)millraceLibrary(logFunction);
  return millraceStart(logFunction);
}

ncclResult_t collNetListen8(int dev, void *handle, void **listenComm) {
  MILLRACE_FORWARD_SHIELDED(collNetListen, MILLRACE_CALLER, dev, handle, listenComm);
}

ncclResult_t collNetListen11(void *ctx, int dev, void *handle, void **listenComm) {
  MILLRACE_FORWARD_SHIELDED(collNetListen, ctx, dev, handle, listenComm);
}

ncclResult_t collNetConnect(void *handles[], int nranks, int rank, void *listenComm, void **collComm) {
  MILLRACE_FORWARD_SHIELDED(collNetConnect, handles, nranks, rank, listenComm, collComm);
}

ncclResult_t collNetReduceSupport(ncclDataType_t dataType, ncclRedOp_t redOp, int *supported) {
  MILLRACE_FORWARD(collNetReduceSupport, (int)dataType, (int)redOp, supported);
}

ncclResult_t collNetRegMr(void *collComm, void *data, size_t size, int type, void **mhandle) {
  MILLRACE_FORWARD_SHIELDED(collNetRegMr, collComm, data, size, type, mhandle);
}

ncclResult_t collNetDeregMr(void *collComm, void *mhandle) {
  MILLRACE_FORWARD_SHIELDED(collNetDeregMr, collComm, mhandle);
}

ncclResult_t collNetIallreduce8(void *collComm, void *sendData, void *recvData, int count,
                                ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                                void *recvMhandle, void **request) {
  return collNetIallreduce9(collComm, sendData, recvData, (size_t)count, dataType, redOp, sendMhandle, recvMhandle,
                            request);
}

ncclResult_t collNetIallreduce9(void *collComm, void *sendData, void *recvData, size_t count,
                                ncclDataType_t dataType, ncclRedOp_t redOp, void *sendMhandle,
                                void *recvMhandle, void **request) {
  MILLRACE_FORWARD(collNetAllReduce, collComm, sendData, recvData, count, (int)dataType, (int)redOp, sendMhandle,
                   recvMhandle, request);
}

/* The window has one part, because NCCL never passes more. NCCL's own adapter for v8 refuses several parts. */
ncclResult_t collNetIallgather8(void *collComm, void *sendData, int nRecvParts, ncclNetSGE_v8_t *recvParts,
                                size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
                                void *sendMhandle, void **request) {
  ncclNetSGE_v9_t part = {recvParts->mhandle, recvParts->address, recvParts->size};
  return collNetIallgather9(collComm, sendData, nRecvParts, &part, bytesPerRank, windowOffset, windowBytes,
                            sendMhandle, request);
}

ncclResult_t collNetIallgather9(void *collComm, void *sendData, int nRecvParts, ncclNetSGE_v9_t *recvParts,
                                size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
                                void *sendMhandle, void **request) {
  if (nRecvParts != 1 || recvParts->size < windowBytes)
    return ncclInvalidArgument;
  MILLRACE_FORWARD(collNetAllGather, collComm, sendData, recvParts->address, bytesPerRank, windowOffset,
                   windowBytes, sendMhandle, recvParts->mhandle, request);
}

ncclResult_t collNetIreducescatter8(void *collComm, int nSendParts, ncclNetSGE_v8_t *sendParts,
                                    void *recvData, size_t bytesPerRank, size_t windowOffset,
                                    size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                    void *recvMhandle, void **request) {
  ncclNetSGE_v9_t part = {sendParts->mhandle, sendParts->address, sendParts->size};
  return collNetIreducescatter9(collComm, nSendParts, &part, recvData, bytesPerRank, windowOffset, windowBytes,
                                dataType, redOp, recvMhandle, request);
}

ncclResult_t collNetIreducescatter9(void *collComm, int nSendParts, ncclNetSGE_v9_t *sendParts,
                                    void *recvData, size_t bytesPerRank, size_t windowOffset,
                                    size_t windowBytes, ncclDataType_t dataType, ncclRedOp_t redOp,
                                    void *recvMhandle, void **request) {
  if (nSendParts != 1 || sendParts->size < windowBytes)
    return ncclInvalidArgument;
  MILLRACE_FORWARD(collNetReduceScatter, collComm, sendParts->address, recvData, bytesPerRank, windowOffset,
                   windowBytes, (int)dataType, (int)redOp, sendParts->mhandle, recvMhandle, request);
}

/* Host memory needs no flush. A null request is complete. */
ncclResult_t collNetIflush(void *collComm, void *data, int size, void *mhandle, void **request) {
  (void)collComm, (void)data, (void)size, (void)mhandle;
  *request = NULL;
  return ncclSuccess;
}

ncclResult_t collNetTest(void *request, int *done, int *size) {
  MILLRACE_FORWARD(collNetTest, request, done, size);
}

ncclResult_t collNetCloseColl(void *collComm) {
  MILLRACE_FORWARD_SHIELDED(collNetCloseColl, collComm);
}

ncclResult_t collNetCloseListen(void *listenComm) {
  MILLRACE_FORWARD_SHIELDED(collNetCloseListen, listenComm);
}

ncclResult_t collNetFinalize11(void *ctx) {
  (void)ctx;
  return ncclSuccess;
}
