/* The entries that the GIN tables and the RMA tables share. */
#ifndef MILLRACE_GIN_THUNKS_H
#define MILLRACE_GIN_THUNKS_H

#include "shim.h"

#include "nccl/gin_v12.h"
#include "nccl/gin_v13.h"
#include "nccl/gin_v14.h"
#include "nccl/gin_v15.h"

/* Registers memory by its address, even if NCCL also passes a file descriptor. */
#define MILLRACE_GIN_COMMON                                                                         \
  .name = "Millrace", .devices = ginDevices, .listen = ginListen,                                    \
  .deregMrSym = ginDeregMrSym, .destroyContext = ginDestroyContext, .closeColl = ginCloseColl,      \
  .closeListen = ginCloseListen, .queryLastError = ginQueryLastError, .finalize = ginFinalize

/* Structure behind a ginCtx. Java writes it. C reads error, so that a query needs no upcall. */
struct millraceGinContext {
  /* Not 0 once an operation of the context's group failed. Java's volatile store pairs with the acquire load here. */
  const int *error;
  /* Java's handle of the context. */
  uint64_t handle;
};

ncclResult_t ginInit(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
ncclResult_t ginDevices(int *ndev);
ncclResult_t ginListen(void *ctx, int dev, void *handle, void **listenComm);
ncclResult_t ginConnect(void *ctx, void *handles[], int nranks, int rank, int queueDepth, void *listenComm,
                        void **collComm);
ncclResult_t ginRegMrSym(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle,
                         void **ginHandle);
ncclResult_t ginRegMrSymDmaBuf(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd,
                               uint64_t mrFlags, void **mhandle, void **ginHandle);
ncclResult_t ginDeregMrSym(void *collComm, void *mhandle);
ncclResult_t ginDestroyContext(void *ginCtx);
ncclResult_t ginCloseColl(void *collComm);
ncclResult_t ginCloseListen(void *listenComm);
ncclResult_t ginQueryLastError(void *ginCtx, bool *hasError);
ncclResult_t ginFinalize(void *ctx);

#endif
