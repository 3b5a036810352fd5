/* Writes C's lines to NCCL's log. */
#include "shim.h"

#include <stdarg.h>
#include <stdio.h>

static ncclDebugLogger_t logger;

void millraceLog(ncclDebugLogger_t log, int level, const char *line) {
  log(millraceWarnLevel((const void *)log) + level - NCCL_LOG_WARN, NCCL_INIT | NCCL_NET, "millrace", 0,
      "NET/Millrace: %s", line);
}

/* The release pairs with the acquire below, because one thread of NCCL may pass a logger while another warns. */
void millraceWarnThrough(ncclDebugLogger_t given) { __atomic_store_n(&logger, given, __ATOMIC_RELEASE); }

void millraceWarn(const char *format, ...) {
  ncclDebugLogger_t log = __atomic_load_n(&logger, __ATOMIC_ACQUIRE);
  char line[1000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (log)
    millraceLog(log, NCCL_LOG_WARN, line);
}
