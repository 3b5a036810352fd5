/* Events of messages, for NCCL's profilers. */
#ifndef MILLRACE_NET_EVENTS_H
#define MILLRACE_NET_EVENTS_H

#include "shim.h"

/* Buffers of one receive at the most: what NCCL's own networks allow. */
#define MILLRACE_MAX_RECVS 8

/* What NCCL hands to init: it passes an event on to the profiler, if there is one. */
void netEventsUse(ncclProfilerCallback_t function);

/* Messages were posted on a connection as one request. If a profiler wants any of them the request becomes one of
 * ours. */
void netEventStart(void *comm, int count, void **parents, int receives, const size_t *bytes, void **request);

/* Java's request. */
void *netEventRequest(void *request);

/* It is done, or has failed. */
void netEventStop(void *request);

/* A connection is closed: of its requests that were not done nobody asks any more. */
void netEventsClose(void *comm);

#endif
