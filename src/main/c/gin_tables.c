/*
 * The GIN tables: v11 of NCCL 2.28, v12 of 2.29, v13 of 2.30.3 and 2.30.4, v14 since 2.30.5, v15 of inspected later
 * releases. NCCL finds them in the library of its network. The functions of host-started operations stay null.
 * ginProgress also stays null, because NCCL calls it only for plugins that leave the kernels' queues to NCCL's own
 * proxy. Without v13, NCCL 2.30.3 and 2.30.4 would use v12, and would treat the descriptors of their kernels as
 * descriptors of 2.29.
 */
#include "gin_thunks.h"

#include <stdio.h>
#include <string.h>

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
    MILLRACE_GIN_COMMON, .init = ginInit, .getProperties = getProperties11, .connect = connect11,
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
    MILLRACE_GIN_COMMON, .init = ginInit, .getProperties = getProperties11, .connect = connect12,
    .createContext = createContext12, .regMrSym = ginRegMrSym};

/* NCCL 2.30.3 and 2.30.4 register memory for RMA through this table, by file descriptor if the plugin accepts that. */
static ncclResult_t getProperties13(int dev, ncclNetProperties_v12_t *props) {
  MILLRACE_FORWARD(ginGetProperties, 13, dev, props);
}

static ncclResult_t createContext13(void *collComm, ncclGinConfig_v13_t *config, void **ginCtx,
                                    ncclNetDeviceHandle_t **devHandle) {
  const int backendVersion = 1; /* NCCL 2.30.5 and later identify the kernels of 2.30.3 and 2.30.4 by this number */
  MILLRACE_FORWARD_SHIELDED(ginCreateContext, 13, collComm, config->nSignals, config->nCounters,
                            config->nContexts, config->queueDepth, backendVersion, ginCtx, devHandle);
}

MILLRACE_EXPORT const ncclGin_v13_t ncclGinPlugin_v13 = {
    MILLRACE_GIN_COMMON, .init = ginInit, .getProperties = getProperties13, .connect = connect11,
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
    MILLRACE_GIN_COMMON, .init = ginInit, .getGinProperties = getGinProperties14,
    .getProperties = getProperties14, .connect = connect11, .createContext = createContext14, .regMrSym = ginRegMrSym,
    .regMrSymDmaBuf = ginRegMrSymDmaBuf};

/*
 * Inspected releases of NCCL with the size of v15's properties: {version, bytes}. Sources of NCCL contain two sizes:
 * two flags (2 bytes), or two flags and barrierOptions (8 bytes). In an unknown release neither size is safe to write.
 * The longer size overruns NCCL's structure, and the shorter size leaves a field of the structure uninitialized.
 */
#ifndef MILLRACE_GIN_V15_RELEASES
#define MILLRACE_GIN_V15_RELEASES
#endif
static const struct {
  int version;
  size_t propertyBytes;
} inspected15[] = {MILLRACE_GIN_V15_RELEASES{0, 0}};

/* Returns the size of v15's properties that the calling NCCL allocates; 0 if it is unknown. */
static size_t property_bytes15(const void *code) {
  int version = millraceNcclVersion(code);
  size_t i = 0;
  while (inspected15[i].version && inspected15[i].version != version)
    i++;
  return inspected15[i].propertyBytes;
}

/* NCCL calls this function for each communicator; only the first call warns. */
static ncclResult_t init15(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction) {
  static int warned;
  if (property_bytes15((const void *)logFunction))
    return ginInit(ctx, commId, logFunction);
  int version = millraceNcclVersion((const void *)logFunction);
  char release[48] = "an NCCL of unknown version";
  if (version)
    snprintf(release, sizeof release, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  millraceWarnThrough(logFunction);
  if (!__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
    millraceWarn("this plugin does not serve GIN for %s: the size of the properties in its GIN table v15 is unknown, "
                 "and a write of another size damages NCCL's memory. Use a newer Millrace, or NCCL up to 2.31",
                 release);
  return ncclInvalidUsage;
}

/* NCCL's kernels are compiled with the default barrier. */
static ncclResult_t getGinProperties15(ncclGinProperties_v15_t *properties) {
  ncclGinProperties_v15_t ours = {true, true, NCCL_GIN_BARRIER_DEFAULT};
  size_t bytes = property_bytes15(__builtin_return_address(0));
  memcpy(properties, &ours, bytes);
  return bytes ? ncclSuccess : ncclInvalidUsage;
}

/* The abort flag is ignored, because connecting has its own deadline. */
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
    MILLRACE_GIN_COMMON, .init = init15, .getGinProperties = getGinProperties15,
    .getProperties = getProperties14, .connect = connect15, .createContext = createContext15, .regMrSym = ginRegMrSym,
    .regMrSymDmaBuf = ginRegMrSymDmaBuf};
