/* ncclCommGetAsyncError for communicators whose connections were taken over. */
#ifndef MILLRACE_ASYNC_ERROR_H
#define MILLRACE_ASYNC_ERROR_H

#include "shim.h"

/* NCCL calls the plugin: its logger tells which libnccl that is. */
void millraceFindNccl(ncclDebugLogger_t logFunction);

/* NCCL has made a communicator: context is the network's, communicator its hash. */
void millraceCommunicatorBegins(void *context, uint64_t communicator);

/* NCCL ends it. */
void millraceCommunicatorEnds(void *context);

extern const struct millraceDowncalls millraceDowncalls;

#endif
