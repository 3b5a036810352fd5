/*
 * The latest operations of a communicator, in the communicator's block of the process's trace file. The Java classes
 * org.millrace.trace.TraceLayout and CommunicatorFields have the same numbers.
 */
#ifndef MILLRACE_OPERATIONS_H
#define MILLRACE_OPERATIONS_H

#include <stdint.h>

#define MILLRACE_OPERATION_RECORDS 32
#define MILLRACE_OPERATION_NAME 32
#define MILLRACE_OPERATION_HOW 16

/*
 * Record of operation n, at index n modulo MILLRACE_OPERATION_RECORDS. Times are CLOCK_MONOTONIC in nanoseconds; 0
 * until the event.
 */
typedef struct millraceOperation {
  /* Number among the communicator's collectives, from 0; -1 for a send or receive. */
  int64_t sequence;
  /* Length in bytes; -1 if unknown. */
  int64_t bytes;
  int64_t count;
  /* NCCL's number of the element type; -1 if unknown. */
  int32_t type;
  int32_t channels;
  /* Peer of a send or receive, and root of a collective; -1 for none. */
  int32_t peer;
  int32_t root;
  int64_t enqueued;
  int64_t started;
  int64_t ended;
  char name[MILLRACE_OPERATION_NAME];
  /*
   * One bit for each of the first 64 channels: whether the channel's block of the kernel has started, and whether it
   * has ended. Set only if kernels report these events.
   */
  uint64_t channelsStarted;
  uint64_t channelsEnded;
  /* Algorithm and protocol. */
  char how[MILLRACE_OPERATION_HOW];
} millraceOperation;

/*
 * enqueued is the number of operations. It is stored with release after the operation's record. functions has the
 * number of collectives of each function that NCCL's RAS counts, in the order of ncclFunc_t: Broadcast, Reduce,
 * AllGather, ReduceScatter, AllReduce.
 */
#define MILLRACE_FUNCTIONS 5

typedef struct millraceOperations {
  char head[128];
  int64_t enqueued;
  char description[56];
  int64_t functions[MILLRACE_FUNCTIONS];
  char name[280];
  millraceOperation records[MILLRACE_OPERATION_RECORDS];
} millraceOperations;

#endif
