/* What the versions of NCCL's profiler table share: an event as it is kept. */
#ifndef MILLRACE_PROFILER_H
#define MILLRACE_PROFILER_H

#include "shim.h"

/* An operation that is enqueued, whichever version's descriptor said so. */
struct millraceEnqueued {
  /* A collective, or a send or receive. */
  int collective;
  const char *function;
  const char *type;
  size_t count;
  /* A collective's root, or the peer. */
  int root;
  int channels;
  const char *algorithm;
  const char *protocol;
};

/* What is counted, as it comes to Java: of each how many have begun, and how many have ended. */
enum millraceKind { MILLRACE_COLLECTIVES, MILLRACE_TRANSFERS, MILLRACE_BLOCKS, MILLRACE_KINDS };

ncclResult_t profilerInit(void **context, uint64_t communicator, int *mask, int nodes, int ranks, int rank);
ncclResult_t profilerFinalize(void *context);

/* Both give an event's handle, which stays null for what is not kept. */
void profilerEnqueued(void *context, void **handle, const struct millraceEnqueued *operation);
void profilerBlockStarted(void *context, void **handle, void *operation, int channel);

ncclResult_t profilerStop(void *handle);
ncclResult_t profilerRecord(void *handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v4_t *arguments);

#endif
