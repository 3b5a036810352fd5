/* The GIN tables: v11 of NCCL 2.28, v12 of 2.29, v13 of 2.30.3 and 2.30.4, v14 since 2.30.5, v15
 * of 2.32.6. NCCL finds them in the library that brought the network. What the host begins stays null in them, and so does
 * ginProgress: NCCL calls it only for plugins that leave the kernels' queues to NCCL's own proxy. NCCL
 * 2.30.3 and 2.30.4 would take v12 if there were no v13, and their kernels' descriptors for 2.29's. */
#include "gin_thunks.h"

static ncclResult_t getProperties11(int dev, ncclNetProperties_v11_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 11, dev, props);
}

static ncclResult_t connect11(void *ctx, void *handles[], int nranks, int rank, void *listenComm,
                              void **collComm) {
  return ginConnect(ctx, handles, nranks, rank, 0, listenComm, collComm);
}

static ncclResult_t createContext11(void *collComm, int nSignals, int nCounters, void **ginCtx,
                                    ncclNetDeviceHandle_t **devHandle) {
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 11, collComm, nSignals, nCounters, 1, 0, 0, ginCtx, devHandle);
}

MILLRACE_EXPORT const ncclGin_v11_t ncclGinPlugin_v11 = {
    MILLRACE_GIN_COMMON, .getProperties = getProperties11, .connect = connect11,
    .createContext = createContext11, .regMrSym = ginRegMrSym};

static ncclResult_t connect12(void *ctx, void *handles[], int nranks, int rank, int nConnections,
                              int queueDepth, void *listenComm, void **collComm) {
  (void)nConnections;
  return ginConnect(ctx, handles, nranks, rank, queueDepth, listenComm, collComm);
}

static ncclResult_t createContext12(void *collComm, int nSignals, int nCounters, int nContexts,
                                    void **ginCtx, ncclNetDeviceHandle_t **devHandle) {
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 12, collComm, nSignals, nCounters, nContexts, 0, 0, ginCtx,
                            devHandle);
}

MILLRACE_EXPORT const ncclGin_v12_t ncclGinPlugin_v12 = {
    MILLRACE_GIN_COMMON, .getProperties = getProperties11, .connect = connect12,
    .createContext = createContext12, .regMrSym = ginRegMrSym};

/* RMA of these two releases registers through this table, with file descriptors if they are taken. */
static ncclResult_t getProperties13(int dev, ncclNetProperties_v12_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 13, dev, props);
}

static ncclResult_t createContext13(void *collComm, ncclGinConfig_v13_t *config, void **ginCtx,
                                    ncclNetDeviceHandle_t **devHandle) {
  const int backendVersion = 1; /* what later releases call the kernels of these two */
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 13, collComm, config->nSignals, config->nCounters,
                            config->nContexts, config->queueDepth, backendVersion, ginCtx, devHandle);
}

MILLRACE_EXPORT const ncclGin_v13_t ncclGinPlugin_v13 = {
    MILLRACE_GIN_COMMON, .getProperties = getProperties13, .connect = connect11,
    .createContext = createContext13, .regMrSym = ginRegMrSym,
    .regMrSymDmaBuf = ginRegMrSymDmaBuf};

static ncclResult_t getGinProperties14(ncclGinProperties_v14_t *properties) {
  properties->supportsStrongSignals = true;
  properties->supportsVASignals = true;
  return ncclSuccess;
}

static ncclResult_t getProperties14(int dev, ncclNetProperties_v12_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 14, dev, props);
}

static ncclResult_t createContext14(void *collComm, ncclGinConfig_v14_t *config, void **ginCtx,
                                    ncclNetDeviceHandle_t **devHandle) {
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 14, collComm, config->nSignals, config->nCounters,
                            config->nContexts, config->queueDepth, config->backendVersion, ginCtx, devHandle);
}

MILLRACE_EXPORT const ncclGin_v14_t ncclGinPlugin_v14 = {
    MILLRACE_GIN_COMMON, .getGinProperties = getGinProperties14, .getProperties = getProperties14,
    .connect = connect11, .createContext = createContext14, .regMrSym = ginRegMrSym,
    .regMrSymDmaBuf = ginRegMrSymDmaBuf};

/* Kernels meet by the signals that they were compiled for: what all of them were. */
static ncclResult_t getGinProperties15(ncclGinProperties_v15_t *properties) {
  *properties = (ncclGinProperties_v15_t){true, true, NCCL_GIN_BARRIER_DEFAULT};
  return ncclSuccess;
}

/* An abort is not looked at: connecting ends by its own deadline. */
static ncclResult_t connect15(void *ctx, void *handles[], int nranks, int rank, void *listenComm, void **collComm,
                              volatile uint32_t *abortFlag) {
  (void)abortFlag;
  return connect11(ctx, handles, nranks, rank, listenComm, collComm);
}

static ncclResult_t createContext15(void *collComm, ncclGinConfig_v15_t *config, void **ginCtx,
                                    ncclNetDeviceHandle_t **devHandle) {
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 15, collComm, config->nSignals, config->nCounters,
                            config->nContexts, config->queueDepth, config->backendVersion, ginCtx, devHandle);
}

MILLRACE_EXPORT const ncclGin_v15_t ncclGinPlugin_v15 = {
    MILLRACE_GIN_COMMON, .getGinProperties = getGinProperties15, .getProperties = getProperties14,
    .connect = connect15, .createContext = createContext15, .regMrSym = ginRegMrSym,
    .regMrSymDmaBuf = ginRegMrSymDmaBuf};
