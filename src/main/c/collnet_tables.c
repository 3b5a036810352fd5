/*
 * The collective network tables. NCCL looks for them in the library of its network. NCCL uses a table only if the user
 * requests a collective network, by NCCL_COLLNET_ENABLE=1 or a communicator's configuration.
 */
#include "collnet_thunks.h"

static ncclResult_t getProperties12(int dev, ncclNetProperties_v12_t *props) {
  return netGetProperties(12, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclCollNet_v12_t ncclCollNetPlugin_v12 = {
    MILLRACE_COLLNET_COMMON, .init = collNetInit11, .getProperties = getProperties12, .listen = collNetListen11,
    .iallreduce = collNetIallreduce9, .iallgather = collNetIallgather9,
    .ireducescatter = collNetIreducescatter9,
    .finalize = collNetFinalize11};

static ncclResult_t getProperties11(int dev, ncclNetProperties_v11_t *props) {
  return netGetProperties(11, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclCollNet_v11_t ncclCollNetPlugin_v11 = {
    MILLRACE_COLLNET_COMMON, .init = collNetInit11, .getProperties = getProperties11, .listen = collNetListen11,
    .iallreduce = collNetIallreduce9, .iallgather = collNetIallgather9,
    .ireducescatter = collNetIreducescatter9,
    .finalize = collNetFinalize11};

static ncclResult_t getProperties10(int dev, ncclNetProperties_v10_t *props) {
  return netGetProperties(10, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclCollNet_v10_t ncclCollNetPlugin_v10 = {
    MILLRACE_COLLNET_COMMON, .init = collNetInit8, .getProperties = getProperties10, .listen = collNetListen8,
    .iallreduce = collNetIallreduce9, .iallgather = collNetIallgather9,
    .ireducescatter = collNetIreducescatter9};

static ncclResult_t getProperties9(int dev, ncclNetProperties_v9_t *props) {
  return netGetProperties(9, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclCollNet_v9_t ncclCollNetPlugin_v9 = {
    MILLRACE_COLLNET_COMMON, .init = collNetInit8, .getProperties = getProperties9, .listen = collNetListen8,
    .iallreduce = collNetIallreduce9, .iallgather = collNetIallgather9,
    .ireducescatter = collNetIreducescatter9};

static ncclResult_t getProperties8(int dev, ncclNetProperties_v8_t *props) {
  return netGetProperties(8, dev, props, MILLRACE_CALLER);
}

MILLRACE_EXPORT const ncclCollNet_v8_t ncclCollNetPlugin_v8 = {
    MILLRACE_COLLNET_COMMON, .init = collNetInit8, .getProperties = getProperties8, .listen = collNetListen8,
    .iallreduce = collNetIallreduce8, .iallgather = collNetIallgather8,
    .ireducescatter = collNetIreducescatter8};
