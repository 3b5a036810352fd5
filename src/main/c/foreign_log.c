/*
 * Functions of NCCL that a network plugin expects, for a plugin that Java loads instead of NCCL. The plugin's threads
 * may log at any time, and such a thread should not enter a JVM. This file therefore keeps the lines until Java fetches
 * them.
 */
#include "shim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINES 64
#define LINE_BYTES 1024

/* The newest lines, guarded by lock. If more than LINES lines are pending, the oldest lines are lost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  ncclDebugLogLevel level;
  char text[LINE_BYTES];
} lines[LINES];
static unsigned long written, fetched;

MILLRACE_EXPORT __attribute__((format(printf, 5, 6))) void millraceForeignLog(ncclDebugLogLevel level,
                                                                               unsigned long flags, const char *file,
                                                                               int line, const char *format, ...) {
  va_list arguments;
  (void)flags, (void)file, (void)line;
  if (level != NCCL_LOG_WARN && level != NCCL_LOG_INFO)
    return;
  va_start(arguments, format);
  pthread_mutex_lock(&lock);
  lines[written % LINES].level = level;
  vsnprintf(lines[written % LINES].text, LINE_BYTES, format, arguments);
  written++;
  if (written - fetched > LINES)
    fetched = written - LINES;
  pthread_mutex_unlock(&lock);
  va_end(arguments);
}

/*
 * Copies the oldest pending line into text, which has room for LINE_BYTES. Returns the level of the line, or 0 if no
 * line is pending.
 */
MILLRACE_EXPORT int millraceForeignLine(char *text) {
  int level = 0;
  pthread_mutex_lock(&lock);
  if (fetched < written) {
    level = (int)lines[fetched % LINES].level;
    memcpy(text, lines[fetched % LINES].text, LINE_BYTES);
    fetched++;
  }
  pthread_mutex_unlock(&lock);
  return level;
}

/* A plugin's profiler events are ignored. */
MILLRACE_EXPORT ncclResult_t millraceForeignProfile(void **eHandle, int type, void *pHandle, int64_t pluginId,
                                                    void *extData) {
  (void)eHandle, (void)type, (void)pHandle, (void)pluginId, (void)extData;
  return ncclSuccess;
}
