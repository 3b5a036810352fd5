/* Writes C's lines to NCCL's log. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

static ncclDebugLogger_t logger;

void millraceLog(ncclDebugLogger_t log, int level, const char *line) {
  int warn = millraceWarnLevel((const void *)log);
  if (warn)
    log(warn + level - NCCL_LOG_WARN, NCCL_INIT | NCCL_NET, "millrace", 0, "NET/Millrace: %s", line);
}

/*
 * Keeps the logger's library loaded. Threads of the plugin may log after the program has unloaded that library, because
 * tables before v11 do not report the last communicator. The release pairs with the acquire below, because one thread
 * of NCCL may pass a logger while another warns.
 */
void millraceWarnThrough(ncclDebugLogger_t given) {
  Dl_info from;
  void *library = dladdr((const void *)given, &from) ? dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)
                                                     : NULL;
  if (library)
    dlclose(library);
  __atomic_store_n(&logger, given, __ATOMIC_RELEASE);
}

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
