/*
 * ncclProfiler_v4 to v7. NCCL uses the tables of the library that NCCL_PROFILER_PLUGIN names, or else the tables of the
 * library of its network. Enqueued operations are recorded, and so are kernel blocks if the user enables them. All
 * other events get a null handle. NCCL reports some of them as parents of the recorded events.
 */
#include "profiler.h"

#define START(version)                                                                                               \
  static ncclResult_t start##version(void *context, void **handle, ncclProfilerEventDescr_v##version##_t *event) {   \
    *handle = NULL;                                                                                                  \
    if (!context)                                                                                                    \
      return ncclSuccess;                                                                                            \
    if (event->type == ncclProfileColl)                                                                              \
      profilerEnqueued(context, handle,                                                                              \
                       &(struct millraceEnqueued){                                                                   \
                           .collective = 1, .function = event->event.coll.func, .type = event->event.coll.datatype,  \
                           .count = event->event.coll.count, .root = event->event.coll.root,                         \
                           .channels = event->event.coll.nChannels, .algorithm = event->event.coll.algo,             \
                           .protocol = event->event.coll.proto});                                                    \
    else if (event->type == ncclProfileP2p)                                                                          \
      profilerEnqueued(context, handle,                                                                              \
                       &(struct millraceEnqueued){                                                                   \
                           .function = event->event.p2p.func, .type = event->event.p2p.datatype,                     \
                           .count = event->event.p2p.count, .root = event->event.p2p.peer,                           \
                           .channels = event->event.p2p.nChannels});                                                 \
    else if (event->type == ncclProfileKernelCh)                                                                     \
      profilerBlockStarted(context, handle, event->parentObj, event->event.kernelCh.channelId);                      \
    return ncclSuccess;                                                                                              \
  }

START(4)
START(5)
START(6)
START(7)

static ncclResult_t init4(void **context, int *mask, const char *name, uint64_t communicator, int nodes, int ranks,
                          int rank, ncclDebugLogger_t logFunction) {
  (void)name, (void)logFunction;
  return profilerInit(context, communicator, mask, nodes, ranks, rank);
}

static ncclResult_t init5(void **context, uint64_t communicator, int *mask, const char *name, int nodes, int ranks,
                          int rank, ncclDebugLogger_t logFunction) {
  return init4(context, mask, name, communicator, nodes, ranks, rank, logFunction);
}

#define TABLE(version, starts)                                                                                       \
  MILLRACE_EXPORT const ncclProfiler_v##version##_t ncclProfiler_v##version = {                                      \
      .name = "Millrace", .init = starts, .startEvent = start##version, .stopEvent = profilerStop,                   \
      .recordEventState = profilerRecord, .finalize = profilerFinalize};

TABLE(4, init4)
TABLE(5, init5)
TABLE(6, init5)
TABLE(7, init5)
