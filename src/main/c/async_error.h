/* ncclCommGetAsyncError for communicators with connections that were taken over. */
#ifndef MILLRACE_ASYNC_ERROR_H
#define MILLRACE_ASYNC_ERROR_H

#include "shim.h"

/* Finds the libnccl that calls the plugin, by its logger. */
void millraceFindNccl(ncclDebugLogger_t logFunction);

/* Records a communicator that NCCL has created: context is the network's context for it, communicator is its hash. */
void millraceCommunicatorBegins(void *context, uint64_t communicator);

/* Removes a communicator that NCCL destroys. */
void millraceCommunicatorEnds(void *context);

extern const struct millraceDowncalls millraceDowncalls;

#endif
