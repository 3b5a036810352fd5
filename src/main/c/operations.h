/* What a communicator was told to do last: a communicator's block of the file that a process writes down what it does in
 * (org.millrace.trace.TraceLayout and CommunicatorFields, whose numbers these are). */
#ifndef MILLRACE_OPERATIONS_H
#define MILLRACE_OPERATIONS_H

#include <stdint.h>

#define MILLRACE_OPERATION_RECORDS 32
#define MILLRACE_OPERATION_NAME 32
#define MILLRACE_OPERATION_HOW 16

/* Operation n lies at n modulo their number. Times are of CLOCK_MONOTONIC, in nanoseconds; 0 until it happens. */
typedef struct millraceOperation {
  /* Among the communicator's collectives it is this one, from 0 on; -1 of a send or receive. */
  int64_t sequence;
  /* Its length; -1 if not known. */
  int64_t bytes;
  int64_t count;
  /* NCCL's number of the type of elements; -1 if not known. */
  int32_t type;
  int32_t channels;
  /* -1 where there is none. */
  int32_t peer;
  int32_t root;
  int64_t enqueued;
  int64_t started;
  int64_t ended;
  char name[MILLRACE_OPERATION_NAME];
  /* Where kernels say so: a bit for each channel, of the first 64, whose block has started, and has ended. */
  uint64_t channelsStarted;
  uint64_t channelsEnded;
  /* Algorithm and protocol. */
  char how[MILLRACE_OPERATION_HOW];
} millraceOperation;

/* enqueued counts operations, and is stored after the operation's record, with release. */
typedef struct millraceOperations {
  char head[128];
  int64_t enqueued;
  char description[376];
  millraceOperation records[MILLRACE_OPERATION_RECORDS];
} millraceOperations;

#endif
