/* What the shim's files share. */
#ifndef MILLRACE_SHIM_H
#define MILLRACE_SHIM_H

#include <signal.h>

#include "upcalls.h"

#define MILLRACE_EXPORT __attribute__((visibility("default")))

/* The filled functions, or null while nobody has filled them. */
const struct millraceUpcalls *millraceInstalled(void);

/* Makes sure that they are filled: starts a JVM if the process needs one. On failure one line has gone
 * to the logger. Safe from any thread; the first does the work, the others wait for it. */
ncclResult_t millraceStart(ncclDebugLogger_t logFunction);

/* Has the files in shared memory deleted that this process leaves when it exits, and those of dead ones. */
void millraceDeleteLeftoversAtExit(void);

/* Threads that Java starts inherit the signal mask of the thread they are started on: between these two
 * they take no signal that the host waits for. Signals of a thread's own faults stay open, as the JVM
 * uses them. */
void millraceBlockSignals(sigset_t *before);
void millraceRestoreSignals(const sigset_t *before);

/* Calls a Java function; before it is there NCCL is told of an error. */
#define MILLRACE_FORWARD(function, ...)                                    \
  do {                                                                     \
    const struct millraceUpcalls *upcalls = millraceInstalled();           \
    return upcalls ? upcalls->function(__VA_ARGS__) : ncclInternalError;   \
  } while (0)

/* The same for functions that may start threads. */
#define MILLRACE_FORWARD_SHIELDED(function, ...)                           \
  do {                                                                     \
    const struct millraceUpcalls *upcalls = millraceInstalled();           \
    sigset_t before;                                                       \
    if (!upcalls)                                                          \
      return ncclInternalError;                                            \
    millraceBlockSignals(&before);                                         \
    ncclResult_t result = upcalls->function(__VA_ARGS__);                  \
    millraceRestoreSignals(&before);                                       \
    return result;                                                         \
  } while (0)

#endif
