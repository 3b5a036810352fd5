/* Common code of the host programs. They behave toward the plugin as libnccl does. */
#ifndef MILLRACE_TEST_HOST_H
#define MILLRACE_TEST_HOST_H

#include "nccl/plugin.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define STRING_(a) #a
#define STRING(a) STRING_(a)

#define REQUIRE(condition, ...)                                             \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);       \
      fprintf(stderr, __VA_ARGS__);                                         \
      fprintf(stderr, "\n");                                                \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

#define SUCCEEDS(call)                                                      \
  do {                                                                      \
    ncclResult_t result_ = (call);                                          \
    REQUIRE(result_ == ncclSuccess, "result %d", result_);                  \
  } while (0)

#define YIELDS_PER_PAUSE 4
#define PAUSE_MICROSECONDS 20

/*
 * Called repeatedly while a condition does not hold. Threads that only yield would take the cores from the threads that
 * they wait for, so some calls sleep.
 */
static inline void let_others_run(void) {
  static __thread unsigned calls;
  if (++calls % YIELDS_PER_PAUSE)
    sched_yield();
  else
    usleep(PAUSE_MICROSECONDS);
}

/*
 * Release of NCCL that the host imitates. With NCCL_CODE the host returns it from ncclGetVersion (-rdynamic exports the
 * function). Without NCCL_CODE no version is readable, as in a program with a statically linked NCCL. FIFO_VERSION is
 * the layout of the host's connFifo. With RCCL the host has the layouts of RCCL, which connection.h selects.
 */
#ifdef NCCL_CODE
ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_CODE;
  return ncclSuccess;
}
#ifndef FIFO_VERSION
#define FIFO_VERSION (NCCL_CODE > 23100 ? 31 : 28)
#endif
#endif
#ifndef FIFO_VERSION
#define FIFO_VERSION 28
#endif

#ifndef TUNER_VERSION
#define TUNER_VERSION 5
#endif

/* Number of the level WARN. RCCL and NCCLX have one more level before it than NCCL. */
#ifndef WARN_LEVEL
#define WARN_LEVEL NCCL_LOG_WARN
#endif

/* With IS_NCCLX the host has a function that only NCCLX has. */
#ifdef IS_NCCLX
ncclResult_t ncclCommGetUniqueHash(void *comm, uint64_t *hash) {
  (void)comm;
  *hash = 0;
  return ncclSuccess;
}
#endif

/* With CALLS_HIP the host imports a function of HIP, as an RCCL does that was linked statically. */
#ifdef CALLS_HIP
extern int hipGetDevice(int *);
int (*const hip)(int *) = hipGetDevice;
#endif

/* With LOGGER_NAMES_FUNCTION the logger has NCCLX 2.27's signature. */
#ifdef LOGGER_NAMES_FUNCTION
#define FUNCTION __attribute__((unused)) const char *function,
#define LOGGER ((ncclDebugLogger_t)(void *)logger)
#else
#define FUNCTION
#define LOGGER logger
#endif

/* Number of logged warnings. */
static volatile int warnings;

/* Prints one line for each message, in the format that the test reads, and with NCCL's number of the level. */
static void logger(ncclDebugLogLevel level, unsigned long flags, const char *file, FUNCTION int line,
                   const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)flags, (void)file, (void)line;
  level -= WARN_LEVEL - NCCL_LOG_WARN;
  if (level == NCCL_LOG_WARN)
    __atomic_add_fetch(&warnings, 1, __ATOMIC_RELAXED);
  printf("LOG %d %s\n", (int)level, text);
  fflush(stdout);
}

/* Opens a plugin as NCCL does. */
static inline void *open_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library, "%s", dlerror());
  return library;
}

static inline void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  REQUIRE(found, "%s", dlerror());
  return found;
}

/* Returns pseudo-random numbers that are the same in every run (xorshift64). */
static inline uint64_t next_random(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

#endif
