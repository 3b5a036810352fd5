/* Forwards the operations of NCCL's network tables to Java. Omits traffic classes, which Java does not use. */
#include "async_error.h"
#include "net_events.h"
#include "net_thunks.h"

static ncclResult_t init(int version, void **ctx, uint64_t commId, ncclDebugLogger_t logFunction) {
  const char *path;
  int vendor = (int)millraceVendor(logFunction, &path);
  MILLRACE_FORWARD_SHIELDED(init, version, ctx, commId, logFunction, millraceWarnLevel(logFunction),
                            millraceLibrary(logFunction), vendor, millraceNcclVersion(logFunction), path);
}

ncclResult_t netInit(int version, void **ctx, uint64_t commId, ncclDebugLogger_t logFunction) {
  ncclResult_t result = millraceStart(logFunction);
  millraceFindNccl(logFunction);
  if (result == ncclSuccess)
    result = init(version, ctx, commId, logFunction);
  if (result == ncclSuccess && ctx)
    millraceCommunicatorBegins(*ctx, commId);
  return result;
}

ncclResult_t netDevices(int *ndev) {
  MILLRACE_FORWARD(devices, ndev);
}

ncclResult_t netGetProperties(int version, int dev, void *props, const void *library) {
  MILLRACE_FORWARD(getProperties, version, dev, props, library);
}

ncclResult_t netListen8(int dev, void *handle, void **listenComm) {
  MILLRACE_FORWARD_SHIELDED(listen, NULL, dev, handle, listenComm, MILLRACE_CALLER);
}

ncclResult_t netListen11(void *ctx, int dev, void *handle, void **listenComm) {
  MILLRACE_FORWARD_SHIELDED(listen, ctx, dev, handle, listenComm, NULL);
}

ncclResult_t netConnect8(int dev, void *handle, void **sendComm, ncclNetDeviceHandle_t **sendDevComm) {
  MILLRACE_FORWARD_SHIELDED(connect, NULL, dev, handle, sendComm, sendDevComm, millraceOnStack(sendDevComm),
                            MILLRACE_CALLER);
}

ncclResult_t netConnect10(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm) {
  (void)config;
  MILLRACE_FORWARD_SHIELDED(connect, NULL, dev, handle, sendComm, sendDevComm, millraceOnStack(sendDevComm),
                            MILLRACE_CALLER);
}

ncclResult_t netConnect11(void *ctx, int dev, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm) {
  MILLRACE_FORWARD_SHIELDED(connect, ctx, dev, handle, sendComm, sendDevComm, millraceOnStack(sendDevComm), NULL);
}

ncclResult_t netAccept(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **recvDevComm) {
  MILLRACE_FORWARD_SHIELDED(accept, listenComm, recvComm, recvDevComm, millraceOnStack(recvDevComm));
}

ncclResult_t netRegMr(void *comm, void *data, size_t size, int type, void **mhandle) {
  MILLRACE_FORWARD_SHIELDED(regMr, comm, data, size, type, mhandle);
}

ncclResult_t netDeregMr(void *comm, void *mhandle) {
  MILLRACE_FORWARD_SHIELDED(deregMr, comm, mhandle);
}

ncclResult_t netIsend8(void *sendComm, void *data, int size, int tag, void *mhandle, void **request) {
  return netIsend9(sendComm, data, (size_t)size, tag, mhandle, request);
}

ncclResult_t netIsend9(void *sendComm, void *data, size_t size, int tag, void *mhandle, void **request) {
  MILLRACE_FORWARD(isend, sendComm, data, size, tag, mhandle, request);
}

ncclResult_t netIsend10(void *sendComm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                        void **request) {
  ncclResult_t result = netIsend9(sendComm, data, size, tag, mhandle, request);
  if (result == ncclSuccess)
    netEventStart(sendComm, 1, &phandle, 0, &size, request);
  return result;
}

ncclResult_t netIrecv8(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles,
                       void **request) {
  size_t wide[MILLRACE_MAX_RECVS];
  for (int i = 0; i < n && i < MILLRACE_MAX_RECVS; i++)
    wide[i] = (size_t)sizes[i];
  return netIrecv9(recvComm, n, data, wide, tags, mhandles, request);
}

ncclResult_t netIrecv9(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                       void **request) {
  MILLRACE_FORWARD(irecv, recvComm, n, data, sizes, tags, mhandles, request);
}

ncclResult_t netIrecv10(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                        void **phandles, void **request) {
  ncclResult_t result = netIrecv9(recvComm, n, data, sizes, tags, mhandles, request);
  if (result == ncclSuccess)
    netEventStart(recvComm, n, phandles, 1, sizes, request);
  return result;
}

/* Host memory needs no flush. A null request is complete. */
ncclResult_t netIflush(void *recvComm, int n, void **data, int *sizes, void **mhandles, void **request) {
  (void)recvComm, (void)n, (void)data, (void)sizes, (void)mhandles;
  *request = NULL;
  return ncclSuccess;
}

static ncclResult_t test(void *request, int *done, int *sizes) {
  MILLRACE_FORWARD(test, request, done, sizes);
}

ncclResult_t netTest(void *request, int *done, int *sizes) {
  ncclResult_t result = test(netEventRequest(request), done, sizes);
  if (result != ncclSuccess || *done)
    netEventStop(request);
  return result;
}

ncclResult_t netCloseSend(void *sendComm) {
  netEventsClose(sendComm);
  MILLRACE_FORWARD_SHIELDED(closeSend, sendComm);
}

ncclResult_t netCloseRecv(void *recvComm) {
  netEventsClose(recvComm);
  MILLRACE_FORWARD_SHIELDED(closeRecv, recvComm);
}

ncclResult_t netCloseListen(void *listenComm) {
  MILLRACE_FORWARD_SHIELDED(closeListen, listenComm);
}

/* NCCL 2.28 also calls finalize after a failed init, for instance if no JVM could start. */
ncclResult_t netFinalize11(void *ctx) {
  if (!millraceInstalled())
    return ncclSuccess;
  millraceCommunicatorEnds(ctx);
  MILLRACE_FORWARD_SHIELDED(finalize, ctx);
}
