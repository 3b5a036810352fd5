/* Forwards the operations of NCCL's GIN and RMA tables to Java. */
#include "gin_thunks.h"

ncclResult_t ginInit(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction) {
  ncclResult_t started = millraceStart(logFunction);
  if (started != ncclSuccess)
    return started;
  MILLRACE_FORWARD_SHIELDED(ginInit, ctx, commId, logFunction, millraceWarnLevel((const void *)logFunction));
}

/* NCCL asks each plugin with a GIN table for its devices. If Java cannot serve GIN, the plugin has none. */
ncclResult_t ginDevices(int *ndev) {
  MILLRACE_FORWARD(ginDevices, ndev);
}

ncclResult_t ginListen(void *ctx, int dev, void *handle, void **listenComm) {
  MILLRACE_FORWARD_SHIELDED(ginListen, ctx, dev, handle, listenComm);
}

ncclResult_t ginConnect(void *ctx, void *handles[], int nranks, int rank, int queueDepth, void *listenComm,
                        void **collComm) {
  MILLRACE_FORWARD_SHIELDED(ginConnect, ctx, handles, nranks, rank, queueDepth, listenComm, collComm);
}

ncclResult_t ginRegMrSym(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle,
                         void **ginHandle) {
  MILLRACE_FORWARD_SHIELDED(ginRegMrSym, collComm, data, size, type, mrFlags, mhandle, ginHandle);
}

ncclResult_t ginRegMrSymDmaBuf(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                               uint64_t mrFlags, void **mhandle, void **ginHandle) {
  (void)offset, (void)fd;
  return ginRegMrSym(collComm, data, size, type, mrFlags, mhandle, ginHandle);
}

ncclResult_t ginDeregMrSym(void *collComm, void *mhandle) {
  MILLRACE_FORWARD_SHIELDED(ginDeregMrSym, collComm, mhandle);
}

ncclResult_t ginDestroyContext(void *ginCtx) {
  MILLRACE_FORWARD_SHIELDED(ginDestroyContext, ginCtx);
}

ncclResult_t ginCloseColl(void *collComm) {
  MILLRACE_FORWARD_SHIELDED(ginCloseColl, collComm);
}

ncclResult_t ginCloseListen(void *listenComm) {
  MILLRACE_FORWARD_SHIELDED(ginCloseListen, listenComm);
}

/*
 * NCCL calls this function with every query of a communicator's state, several times for each collective. The function
 * therefore reads C memory and does not call Java.
 */
ncclResult_t ginQueryLastError(void *ginCtx, bool *hasError) {
  const struct millraceGinContext *context = ginCtx;
  *hasError = context && __atomic_load_n(context->error, __ATOMIC_ACQUIRE) != 0;
  return ncclSuccess;
}

ncclResult_t ginFinalize(void *ctx) {
  if (!millraceInstalled())
    return ncclSuccess;
  MILLRACE_FORWARD_SHIELDED(ginFinalize, ctx);
}
