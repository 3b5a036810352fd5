/* Common code of the stub libraries: each call is recorded, and returns the configured code. */
#ifndef MILLRACE_STUB_RECORD_H
#define MILLRACE_STUB_RECORD_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t stub_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stub_changed = PTHREAD_COND_INITIALIZER;
static char stub_calls[1 << 18];
static size_t stub_length;
static int stub_recording = 1;
static char stub_failing[64];
static int stub_code;
static int stub_times;
static char stub_blocking[64];
static int stub_blocked;

/* Records one line per call: the function's name, a space, its arguments. */
__attribute__((format(printf, 2, 3)))
static void stub_record(const char *function, const char *format, ...) {
  pthread_mutex_lock(&stub_mutex);
  if (stub_recording) {
    stub_length += snprintf(stub_calls + stub_length, sizeof(stub_calls) - stub_length, "%s", function);
    va_list arguments;
    va_start(arguments, format);
    stub_length += vsnprintf(stub_calls + stub_length, sizeof(stub_calls) - stub_length, format, arguments);
    va_end(arguments);
    stub_length += snprintf(stub_calls + stub_length, sizeof(stub_calls) - stub_length, "\n");
    if (stub_length >= sizeof(stub_calls)) {
      abort();
    }
  }
  pthread_mutex_unlock(&stub_mutex);
}

/*
 * Returns the code of a call. A call that is configured to block first waits up to 20 s for its release. It reports if
 * the release does not arrive.
 */
static int stub_answer(const char *function) {
  int code = 0;
  int late = 0;
  pthread_mutex_lock(&stub_mutex);
  if (strcmp(function, stub_blocking) == 0) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 20;
    stub_blocked++;
    pthread_cond_broadcast(&stub_changed);
    while (stub_blocking[0] && !late) {
      late = pthread_cond_timedwait(&stub_changed, &stub_mutex, &deadline) != 0;
    }
    stub_blocked--;
  }
  if (stub_times > 0 && strcmp(function, stub_failing) == 0) {
    stub_times--;
    code = stub_code;
  }
  pthread_mutex_unlock(&stub_mutex);
  if (late) {
    stub_record("stub_never_freed", " %s", function);
  }
  return code;
}

void stub_unblock(void) {
  pthread_mutex_lock(&stub_mutex);
  stub_blocking[0] = 0;
  pthread_cond_broadcast(&stub_changed);
  pthread_mutex_unlock(&stub_mutex);
}

/* --- for the tests ------------------------------------------------------------------------ */

/* Copies the calls so far and forgets them. */
void stub_take(char *buffer, size_t size) {
  pthread_mutex_lock(&stub_mutex);
  snprintf(buffer, size, "%s", stub_calls);
  stub_calls[0] = 0;
  stub_length = 0;
  pthread_mutex_unlock(&stub_mutex);
}

void stub_record_calls(int on) { stub_recording = on; }

/* Makes the next calls of a function return a code. */
void stub_fail(const char *function, int code, int times) {
  pthread_mutex_lock(&stub_mutex);
  snprintf(stub_failing, sizeof(stub_failing), "%s", function);
  stub_code = code;
  stub_times = times;
  pthread_mutex_unlock(&stub_mutex);
}

/* Makes calls of a function block. */
void stub_block(const char *function) {
  pthread_mutex_lock(&stub_mutex);
  snprintf(stub_blocking, sizeof(stub_blocking), "%s", function);
  pthread_mutex_unlock(&stub_mutex);
}

/* Waits until a call blocks. */
void stub_await_blocked(void) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 20;
  pthread_mutex_lock(&stub_mutex);
  while (!stub_blocked && pthread_cond_timedwait(&stub_changed, &stub_mutex, &deadline) == 0) {
  }
  pthread_mutex_unlock(&stub_mutex);
}

#define CALL(function, ...) \
  do { \
    stub_record(function, __VA_ARGS__); \
    int answer = stub_answer(function); \
    if (answer) { \
      return answer; \
    } \
  } while (0)

#endif
