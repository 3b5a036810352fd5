/*
 * The RMA tables, v14 since NCCL 2.30.5, v15 of 2.31, v16 and v17 of 2.32. They contain puts and signals that the host
 * starts, over the groups and windows of GIN.
 */
#include "gin_thunks.h"

#include "nccl/rma_v17.h"

static ncclResult_t ginProperties(int dev, ncclNetProperties_v12_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 14, dev, props);
}

/*
 * Returns GIN's properties without the support of file descriptors. If they were supported,
 * NCCL would register memory only by descriptor, but this plugin registers memory by address.
 */
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

/* Every signal is strong: it arrives after all earlier data of its context to the same rank. */
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

#define MILLRACE_RMA_COMMON                                                                                  \
  MILLRACE_GIN_COMMON, .init = ginInit, .getProperties = getProperties, .regMrSym = regMrSym, .iflush = iflush, \
  .test = test

MILLRACE_EXPORT const ncclRma_v14_t ncclRmaPlugin_v14 = {
    MILLRACE_RMA_COMMON, .connect = connectAll, .createContext = createContext,
    .iput = iput, .iputSignal = iputSignal, .iget = iget};

/*
 * The flag that permits to combine operations is only a hint. Operations are combined if they arrive before the first
 * of them is served.
 */
static ncclResult_t iput15(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                           uint64_t dstOff, void *dstMhandle, uint32_t rank, uint32_t optFlags, void **request) {
  (void)optFlags;
  return iput(rmaCtx, context, srcOff, srcMhandle, size, dstOff, dstMhandle, rank, request);
}

static ncclResult_t iputSignal15(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                                 uint64_t dstOff, void *dstMhandle, uint32_t rank, uint64_t signalOff,
                                 void *signalMhandle, uint64_t signalValue, uint32_t signalOp,
                                 bool isStrongSignal, uint32_t optFlags, void **request) {
  (void)optFlags;
  return iputSignal(rmaCtx, context, srcOff, srcMhandle, size, dstOff, dstMhandle, rank, signalOff, signalMhandle,
                    signalValue, signalOp, isStrongSignal, request);
}

static ncclResult_t iget15(void *rmaCtx, int context, uint64_t remoteOff, void *remoteMhandle, size_t size,
                           uint64_t localOff, void *localMhandle, uint32_t rank, uint32_t optFlags, void **request) {
  (void)optFlags;
  return iget(rmaCtx, context, remoteOff, remoteMhandle, size, localOff, localMhandle, rank, request);
}

MILLRACE_EXPORT const ncclRma_v15_t ncclRmaPlugin_v15 = {
    MILLRACE_RMA_COMMON, .connect = connectAll, .createContext = createContext,
    .iput = iput15, .iputSignal = iputSignal15, .iget = iget15};

/* A signal arrives after the earlier puts of the sending rank. It has no order with puts of other ranks. */
static ncclResult_t getRmaProperties(void *collComm, ncclRmaProperties_v16_t *properties) {
  (void)collComm;
  properties->flushesAllPutsOnAnySignal = false;
  return ncclSuccess;
}

MILLRACE_EXPORT const ncclRma_v16_t ncclRmaPlugin_v16 = {
    MILLRACE_RMA_COMMON, .getRmaProperties = getRmaProperties, .connect = connectAll,
    .createContext = createContext, .iput = iput15, .iputSignal = iputSignal15, .iget = iget15};

/* The abort flag is ignored, because connecting has its own deadline. */
static ncclResult_t connect17(void *ctx, void *handles[], int nranks, int rank, void *listenComm, void **collComm,
                              volatile uint32_t *abortFlag) {
  (void)abortFlag;
  return connectAll(ctx, handles, nranks, rank, listenComm, collComm);
}

/* Every context has all peers. An unused peer costs nothing. */
static ncclResult_t createContext17(void *collComm, ncclRmaConfig_v17_t *config, void **rmaCtx) {
  MILLRACE_FORWARD_SHIELDED(rmaCreateContext, collComm, config->nContexts, rmaCtx);
}

MILLRACE_EXPORT const ncclRma_v17_t ncclRmaPlugin_v17 = {
    MILLRACE_RMA_COMMON, .getRmaProperties = getRmaProperties, .connect = connect17,
    .createContext = createContext17, .iput = iput15, .iputSignal = iputSignal15, .iget = iget15};
