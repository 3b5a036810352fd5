/* Events of messages, for NCCL's profilers. */
#ifndef MILLRACE_NET_EVENTS_H
#define MILLRACE_NET_EVENTS_H

#include "shim.h"

/* Maximum number of buffers of one receive, as in NCCL's own networks. */
#define MILLRACE_MAX_RECVS 8

/* Stores the callback that NCCL passes to init. The callback passes an event to the profiler, if there is one. */
void netEventsUse(ncclProfilerCallback_t function);

/*
 * Begins events for messages that were posted on a connection as one request. If a profiler accepts any event, the
 * request is replaced by a number that identifies the stored events.
 */
void netEventStart(void *comm, int count, void **parents, int receives, const size_t *bytes, void **request);

/*
 * Returns the request that Java returned. The argument may be that request, or the number that replaced it because of
 * an event.
 */
void *netEventRequest(void *request);

/* Ends the events of a request that is complete or has failed. */
void netEventStop(void *request);

/* Releases the incomplete requests of a closed connection, because NCCL does not test them any longer. */
void netEventsClose(void *comm);

#endif
