/* Declarations that the shim's files share. */
#ifndef MILLRACE_SHIM_H
#define MILLRACE_SHIM_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "upcalls.h"

#define MILLRACE_EXPORT __attribute__((visibility("default")))

/*
 * Returns the function that calls Java. Returns null until Java has installed this function, and if Java cannot run on
 * the current stack.
 */
millraceCall_t millraceInstalled(void);

/* Returns whether Java can run on the current stack. If it cannot, logs a warning once for each thread. */
int millraceStackFits(void);

/* Returns whether an address is in the part of the calling thread's stack that the thread's callers use. */
int millraceOnStack(const void *address);

/* Writes a line to a logger of NCCL, if it has the known signature. The level is NCCL's number for WARN or INFO. */
void millraceLog(ncclDebugLogger_t log, int level, const char *line);

/*
 * Stores the logger that NCCL passes, and keeps its library loaded. millraceWarn writes a line at level WARN to the
 * logger that was stored last.
 */
void millraceWarnThrough(ncclDebugLogger_t given);
__attribute__((format(printf, 1, 2))) void millraceWarn(const char *format, ...);

/*
 * Removes Java's functions in a forked child. No function of Java may be called there, because Java's threads do not
 * exist in the child.
 */
void millraceForget(void);

/*
 * Ensures that Java has installed its functions. Starts a JVM if the process has none. Logs one line on failure. Safe
 * from any thread: the first thread starts the JVM, and the others wait for it.
 */
ncclResult_t millraceStart(ncclDebugLogger_t logFunction);

/*
 * Returns the load address of the library that contains the given code. The address identifies the calling NCCL.
 * Returns null if no library contains the code.
 */
const void *millraceLibrary(const void *code);

/*
 * Returns the version that ncclGetVersion of the library with the given code returns; 0 if the library has no such
 * function.
 */
int millraceNcclVersion(const void *code);

/* Vendor of a calling library. org.millrace.plugin.host.CallingLibrary.Vendor has the same order. */
enum millraceVendor { MILLRACE_NCCL, MILLRACE_RCCL, MILLRACE_NCCLX, MILLRACE_UNKNOWN };

/*
 * Returns the vendor of the library with the given code, from its name, its use of HIP and its functions. Without
 * evidence of another vendor the result is NCCL. Stores the path of the library; null if no library contains the code.
 */
enum millraceVendor millraceVendor(const void *code, const char **path);

/*
 * Returns the number of the log level WARN in the library with the given code. INFO, ABORT and TRACE follow WARN, as in
 * NCCL. The result is 0 if the library's logger has another signature than NCCL's, so that it cannot be called.
 */
int millraceWarnLevel(const void *code);

/* The library that calls the function in which this macro is used. */
#define MILLRACE_CALLER millraceLibrary(__builtin_return_address(0))

/* Registers the deletion of files in shared memory at exit: files of this process, and files of dead processes. */
void millraceDeleteLeftoversAtExit(void);

/*
 * Called before and after a call in which Java may start threads. Threads inherit the signal mask of their creator.
 * Between the two functions this mask blocks the host's signals. Signals of a thread's own faults stay unblocked,
 * because the JVM uses them.
 */
void millraceBlockSignals(sigset_t *before);
void millraceRestoreSignals(const sigset_t *before);

/*
 * Prepares signals for the start of the JVM from the libjvm that contains the given code. Fault handlers that the
 * program sets later are called after the JVM's.
 */
void millraceShareFaults(const void *code);

/* Records that the JVM has set its fault handlers. */
void millraceKnowHandler(void);

/*
 * Checks whether a handler of the program has replaced the JVM's, for the first count kinds of faults. The most common
 * faults come first. Warns once.
 */
void millraceCheckFaults(int count);

/* The arguments of a call, each as a word. */
#define MILLRACE_1(a) (int64_t)(intptr_t)(a)
#define MILLRACE_2(a, ...) (int64_t)(intptr_t)(a), MILLRACE_1(__VA_ARGS__)
#define MILLRACE_3(a, ...) (int64_t)(intptr_t)(a), MILLRACE_2(__VA_ARGS__)
#define MILLRACE_4(a, ...) (int64_t)(intptr_t)(a), MILLRACE_3(__VA_ARGS__)
#define MILLRACE_5(a, ...) (int64_t)(intptr_t)(a), MILLRACE_4(__VA_ARGS__)
#define MILLRACE_6(a, ...) (int64_t)(intptr_t)(a), MILLRACE_5(__VA_ARGS__)
#define MILLRACE_7(a, ...) (int64_t)(intptr_t)(a), MILLRACE_6(__VA_ARGS__)
#define MILLRACE_8(a, ...) (int64_t)(intptr_t)(a), MILLRACE_7(__VA_ARGS__)
#define MILLRACE_9(a, ...) (int64_t)(intptr_t)(a), MILLRACE_8(__VA_ARGS__)
#define MILLRACE_10(a, ...) (int64_t)(intptr_t)(a), MILLRACE_9(__VA_ARGS__)
#define MILLRACE_11(a, ...) (int64_t)(intptr_t)(a), MILLRACE_10(__VA_ARGS__)
#define MILLRACE_12(a, ...) (int64_t)(intptr_t)(a), MILLRACE_11(__VA_ARGS__)
#define MILLRACE_13(a, ...) (int64_t)(intptr_t)(a), MILLRACE_12(__VA_ARGS__)
#define MILLRACE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, which, ...) which
#define MILLRACE_WORDS(...)                                                                                       \
  MILLRACE_PICK(__VA_ARGS__, MILLRACE_13, MILLRACE_12, MILLRACE_11, MILLRACE_10, MILLRACE_9, MILLRACE_8,          \
                MILLRACE_7, MILLRACE_6, MILLRACE_5, MILLRACE_4, MILLRACE_3, MILLRACE_2, MILLRACE_1, )(__VA_ARGS__)

/* Calls a Java function. The compiler checks the arguments against the function's type. */
#define MILLRACE_CALL(call, function, ...)                                                                        \
  ((void)sizeof(((const struct millraceUpcalls *)NULL)->function(__VA_ARGS__)),                                   \
   (call)((int)(offsetof(struct millraceUpcalls, function) / sizeof(millraceCall_t)),                             \
          (const int64_t[]){MILLRACE_WORDS(__VA_ARGS__)}))

/* Calls a Java function. Until Java has installed it, NCCL receives an error. */
#define MILLRACE_FORWARD(function, ...)                                    \
  do {                                                                     \
    millraceCall_t call = millraceInstalled();                             \
    return call ? MILLRACE_CALL(call, function, __VA_ARGS__) : ncclInternalError; \
  } while (0)

/* Calls a Java function that may start threads. */
#define MILLRACE_FORWARD_SHIELDED(function, ...)                           \
  do {                                                                     \
    millraceCall_t call = millraceInstalled();                             \
    sigset_t before;                                                       \
    if (!call)                                                             \
      return ncclInternalError;                                            \
    millraceBlockSignals(&before);                                         \
    ncclResult_t result = MILLRACE_CALL(call, function, __VA_ARGS__);      \
    millraceRestoreSignals(&before);                                       \
    return result;                                                         \
  } while (0)

#endif
