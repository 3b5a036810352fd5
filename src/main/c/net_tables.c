/*
 * The network tables. NCCL uses the newest table that it knows: v12 since 2.30, v11 since 2.28, v10 since 2.26, v9
 * since 2.24, v8 since 2.20.
 */
#include "net_events.h"
#include "net_thunks.h"

static ncclResult_t init12(void **ctx, uint64_t commId, ncclNetCommConfig_v12_t *config,
                           ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction) {
  (void)config;
  netEventsUse(profFunction);
  return netInit(12, ctx, commId, logFunction);
}

static ncclResult_t getProperties12(int dev, ncclNetProperties_v12_t *props) {
  return netGetProperties(12, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclNet_v12_t ncclNetPlugin_v12 = {
    MILLRACE_NET_COMMON,     .init = init12,       .getProperties = getProperties12,
    .listen = netListen11,   .connect = netConnect11,
    .isend = netIsend10,     .irecv = netIrecv10,  .finalize = netFinalize11};

static ncclResult_t init11(void **ctx, uint64_t commId, ncclNetCommConfig_v11_t *config,
                           ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction) {
  (void)config;
  netEventsUse(profFunction);
  return netInit(11, ctx, commId, logFunction);
}

static ncclResult_t getProperties11(int dev, ncclNetProperties_v11_t *props) {
  return netGetProperties(11, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclNet_v11_t ncclNetPlugin_v11 = {
    MILLRACE_NET_COMMON,     .init = init11,       .getProperties = getProperties11,
    .listen = netListen11,   .connect = netConnect11,
    .isend = netIsend10,     .irecv = netIrecv10,  .finalize = netFinalize11};

static ncclResult_t init10(ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction) {
  netEventsUse(profFunction);
  return netInit(10, NULL, 0, logFunction);
}

static ncclResult_t getProperties10(int dev, ncclNetProperties_v10_t *props) {
  return netGetProperties(10, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclNet_v10_t ncclNetPlugin_v10 = {
    MILLRACE_NET_COMMON,     .init = init10,       .getProperties = getProperties10,
    .listen = netListen8,    .connect = netConnect10,
    .isend = netIsend10,     .irecv = netIrecv10};

static ncclResult_t init9(ncclDebugLogger_t logFunction) {
  return netInit(9, NULL, 0, logFunction);
}

static ncclResult_t getProperties9(int dev, ncclNetProperties_v9_t *props) {
  return netGetProperties(9, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclNet_v9_t ncclNetPlugin_v9 = {
    MILLRACE_NET_COMMON,     .init = init9,        .getProperties = getProperties9,
    .listen = netListen8,    .connect = netConnect8,
    .isend = netIsend9,      .irecv = netIrecv9};

static ncclResult_t init8(ncclDebugLogger_t logFunction) {
  return netInit(8, NULL, 0, logFunction);
}

static ncclResult_t getProperties8(int dev, ncclNetProperties_v8_t *props) {
  return netGetProperties(8, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclNet_v8_t ncclNetPlugin_v8 = {
    MILLRACE_NET_COMMON,     .init = init8,        .getProperties = getProperties8,
    .listen = netListen8,    .connect = netConnect8,
    .isend = netIsend8,      .irecv = netIrecv8};
