/*
 * ncclTunerPlugin_v5 to v7. NCCL also uses the tuner of a network library that it does not use as a network. A failing
 * tuner fails the communicator. Without Java, or without choices of Millrace (a null context), these functions
 * therefore succeed and leave every choice to NCCL.
 */
#include "shim.h"

static ncclResult_t init(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                         ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t *nvlDomainInfo,
                         ncclTunerConstants_v5_t *constants) {
  (void)nvlDomainInfo, (void)constants;
  *ctx = NULL;
  if (!millraceInstalled())
    return ncclSuccess;
  MILLRACE_FORWARD(tunerInit, ctx, commId, nRanks, nNodes, millraceLibrary(logFunction));
}

static ncclResult_t getCollInfo(void *ctx, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float **collCostTable, int numAlgo, int numProto, int regBuff,
                                int *nChannels) {
  if (!ctx)
    return ncclSuccess;
  /* Only SIGSEGV is checked, because the check of a fault costs a system call for each operation. */
  millraceCheckFaults(1);
  MILLRACE_FORWARD(tunerGetCollInfo, ctx, (int)collType, nBytes, numPipeOps, collCostTable, numAlgo,
                   numProto, regBuff, nChannels);
}

static ncclResult_t finalize(void *ctx) {
  if (!ctx)
    return ncclSuccess;
  MILLRACE_FORWARD(tunerFinalize, ctx);
}

MILLRACE_EXPORT const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    .name = "Millrace", .init = init, .getCollInfo = getCollInfo, .finalize = finalize};

MILLRACE_EXPORT const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    .name = "Millrace", .init = init, .getCollInfo = getCollInfo, .finalize = finalize};

static ncclResult_t init7(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                          ncclDebugLogger_t logFunction, ncclNvlDomainInfo_v5_t *nvlDomainInfo,
                          ncclTunerConstants_v7_t *constants) {
  (void)constants;
  return init(ctx, commId, nRanks, nNodes, logFunction, nvlDomainInfo, NULL);
}

MILLRACE_EXPORT const ncclTuner_v7_t ncclTunerPlugin_v7 = {
    .name = "Millrace", .init = init7, .getCollInfo = getCollInfo, .finalize = finalize};
