/* Events of messages, for NCCL's profilers. */
#ifndef MILLRACE_NET_EVENTS_H
#define MILLRACE_NET_EVENTS_H

#include "shim.h"

/* What NCCL hands to init: it passes an event on to the profiler, if there is one. */
void netEventsUse(ncclProfilerCallback_t function);

/* A message was posted. If a profiler wants it the request becomes one of ours. */
void netEventStart(void *parent, int receives, size_t bytes, void **request);

/* Java's request. */
void *netEventRequest(void *request);

/* It is done, or has failed. */
void netEventStop(void *request);

#endif
