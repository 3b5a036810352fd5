/* Parts that the versions of NCCL's profiler table share: events in their recorded form. */
#ifndef MILLRACE_PROFILER_H
#define MILLRACE_PROFILER_H

#include "shim.h"

/* An enqueued operation, from the event descriptor of any version. */
struct millraceEnqueued {
  /* Whether the operation is a collective; otherwise it is a send or receive. */
  int collective;
  const char *function;
  const char *type;
  size_t count;
  /* Root of a collective, or peer of a send or receive. */
  int root;
  int channels;
  const char *algorithm;
  const char *protocol;
};

/* Kinds of events. Java receives for each kind the numbers of begun and of ended events. */
enum millraceKind { MILLRACE_COLLECTIVES, MILLRACE_TRANSFERS, MILLRACE_BLOCKS, MILLRACE_KINDS };

ncclResult_t profilerInit(void **context, uint64_t communicator, int *mask, int nodes, int ranks, int rank);
ncclResult_t profilerFinalize(void *context);

/* The following two functions write an event's handle, which stays null for an event that is not recorded. */
void profilerEnqueued(void *context, void **handle, const struct millraceEnqueued *operation);
void profilerBlockStarted(void *context, void **handle, void *operation, int channel);

ncclResult_t profilerStop(void *handle);
ncclResult_t profilerRecord(void *handle, ncclProfilerEventState_t state, ncclProfilerEventStateArgs_v4_t *arguments);

#endif
