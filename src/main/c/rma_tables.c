/* The RMA table, v14 since NCCL 2.30.5: one-sided operations that the host begins, over the same groups and
 * windows as GIN's. */
#include "gin_thunks.h"

#include "nccl/rma_v14.h"

static ncclResult_t ginProperties(int dev, ncclNetProperties_v12_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 14, dev, props);
}

/* As GIN's, but for file descriptors, with which NCCL would register memory here: it goes by address. */
static ncclResult_t getProperties(int dev, ncclNetProperties_v12_t *props) {
  ncclResult_t result = ginProperties(dev, props);
  if (result == ncclSuccess)
    props->ptrSupport &= ~NCCL_PTR_DMABUF;
  return result;
}

static ncclResult_t connectAll(void *ctx, void *handles[], int nranks, int rank, void *listenComm,
                               void **collComm) {
  return ginConnect(ctx, handles, nranks, rank, 0, listenComm, collComm);
}

static ncclResult_t createContext(void *collComm, ncclRmaConfig_v14_t *config, void **rmaCtx) {
  MILLRACE_FORWARD_SHIELDED(rmaCreateContext, collComm, config->nContexts, rmaCtx);
}

static ncclResult_t regMrSym(void *collComm, void *data, size_t size, int type, uint64_t mrFlags,
                             void **mhandle) {
  void *ginHandle;
  return ginRegMrSym(collComm, data, size, type, mrFlags, mhandle, &ginHandle);
}

static ncclResult_t iput(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                         uint64_t dstOff, void *dstMhandle, uint32_t rank, void **request) {
  MILLRACE_FORWARD(rmaPut, rmaCtx, context, srcOff, srcMhandle, size, dstOff, dstMhandle, (int)rank, request);
}

/* Every signal of ours is strong: it comes after all that its context sent to that rank before. */
static ncclResult_t iputSignal(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                               uint64_t dstOff, void *dstMhandle, uint32_t rank, uint64_t signalOff,
                               void *signalMhandle, uint64_t signalValue, uint32_t signalOp,
                               bool isStrongSignal, void **request) {
  (void)isStrongSignal;
  MILLRACE_FORWARD(rmaPutSignal, rmaCtx, context, srcOff, srcMhandle, size, dstOff, dstMhandle, (int)rank,
                   signalOff, signalMhandle, signalValue, (int)signalOp, request);
}

static ncclResult_t iget(void *rmaCtx, int context, uint64_t remoteOff, void *remoteMhandle, size_t size,
                         uint64_t localOff, void *localMhandle, uint32_t rank, void **request) {
  MILLRACE_FORWARD(rmaGet, rmaCtx, context, remoteOff, remoteMhandle, size, localOff, localMhandle, (int)rank,
                   request);
}

static ncclResult_t iflush(void *rmaCtx, int context, void *mhandle, uint32_t rank, void **request) {
  (void)mhandle;
  MILLRACE_FORWARD(rmaFlush, rmaCtx, context, (int)rank, request);
}

static ncclResult_t test(void *collComm, void *request, int *done) {
  MILLRACE_FORWARD(rmaTest, collComm, request, done);
}

MILLRACE_EXPORT const ncclRma_v14_t ncclRmaPlugin_v14 = {
    MILLRACE_GIN_COMMON, .getProperties = getProperties, .connect = connectAll, .createContext = createContext,
    .regMrSym = regMrSym, .iput = iput, .iputSignal = iputSignal, .iget = iget, .iflush = iflush, .test = test};
