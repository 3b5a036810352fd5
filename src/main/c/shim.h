/* What the shim's files share. */
#ifndef MILLRACE_SHIM_H
#define MILLRACE_SHIM_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "upcalls.h"

#define MILLRACE_EXPORT __attribute__((visibility("default")))

/* What calls Java, or null while nobody has filled it in, and on a stack that Java cannot run on. */
millraceCall_t millraceInstalled(void);

/* Whether Java can run on the stack that this is called on; if not, a line says so once for each thread. */
int millraceStackFits(void);

/* The logger that NCCL gives, and a line at level WARN in the one that it gave last. */
void millraceWarnThrough(ncclDebugLogger_t given);
__attribute__((format(printf, 1, 2))) void millraceWarn(const char *format, ...);

/* In a forked child: Java's threads are not there, and nothing of it may be called any more. */
void millraceForget(void);

/* Makes sure that they are filled: starts a JVM if the process needs one. On failure one line has gone
 * to the logger. Safe from any thread; the first does the work, the others wait for it. */
ncclResult_t millraceStart(ncclDebugLogger_t logFunction);

/* Where the library begins in memory that some code is part of: which NCCL calls. Null if it is none's. */
const void *millraceLibrary(const void *code);

/* The version of NCCL that that library has, as its ncclGetVersion says it; 0 if it has no such function. */
int millraceNcclVersion(const void *code);

/* Returns the path of that library if it is RCCL: its SONAME or a library that it needs says so. Null for any other. */
const char *millraceRccl(const void *code);

/* The library that calls the function which this stands in, one of a table's. */
#define MILLRACE_CALLER millraceLibrary(__builtin_return_address(0))

/* Has the files in shared memory deleted that this process leaves when it exits, and those of dead ones. */
void millraceDeleteLeftoversAtExit(void);

/* Threads that Java starts inherit the signal mask of the thread they are started on: between these two
 * they take no signal that the host waits for. Signals of a thread's own faults stay open, as the JVM
 * uses them. */
void millraceBlockSignals(sigset_t *before);
void millraceRestoreSignals(const sigset_t *before);

/* A JVM is about to be started, whose library has this code. The program's later handlers of faults come behind the JVM's. */
void millraceShareFaults(const void *code);

/* The JVM handles faults from now on. */
void millraceKnowHandler(void);

/* Looks for a program's handler that replaced the JVM's, of so many faults, the commonest first. Warns of it once. */
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

/* A call, which is first checked against the function's type. */
#define MILLRACE_CALL(call, function, ...)                                                                        \
  ((void)sizeof(((const struct millraceUpcalls *)NULL)->function(__VA_ARGS__)),                                   \
   (call)((int)(offsetof(struct millraceUpcalls, function) / sizeof(millraceCall_t)),                             \
          (const int64_t[]){MILLRACE_WORDS(__VA_ARGS__)}))

/* Calls a Java function; before it is there NCCL is told of an error. */
#define MILLRACE_FORWARD(function, ...)                                    \
  do {                                                                     \
    millraceCall_t call = millraceInstalled();                             \
    return call ? MILLRACE_CALL(call, function, __VA_ARGS__) : ncclInternalError; \
  } while (0)

/* The same for functions that may start threads. */
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
