/*
 * Replaces libnccl for programs that query errors of communicators. The memory behind the pointer has the layout of
 * NCCL 2.28's structure, as far as the plugin needs it.
 */
#include "nccl/api.h"
#include "nccl/logger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC 0x0280028002800280

struct ncclComm {
  uint64_t magic;
  char before[1066176];
  uint64_t hash;
  ncclResult_t async;
  char behind[16000];
};

ncclComm_t stubCommunicator(uint64_t hash) {
  ncclComm_t comm = calloc(1, sizeof *comm);
  comm->magic = MAGIC;
  comm->hash = hash;
  return comm;
}

void stubAsyncResult(ncclComm_t comm, ncclResult_t result) {
  comm->async = result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || !error || comm->magic != MAGIC)
    return ncclInvalidArgument;
  *error = comm->async;
  return ncclSuccess;
}

/* Queries like a program that has looked up the function itself, so that no import table contains it. */
ncclResult_t askForError(ncclComm_t comm, ncclResult_t *error) {
  return ncclCommGetAsyncError(comm, error);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made, ncclConfig_t *config,
                            int flags) {
  (void)excluded, (void)count, (void)config, (void)flags;
  *made = stubCommunicator(comm->hash + 1);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->magic = 0;
  free(comm);
  return ncclSuccess;
}

static void print(ncclDebugLogLevel level, unsigned long flags, const char *file, int line, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)flags, (void)file, (void)line;
  printf("LOG %d %s\n", (int)level, text);
  fflush(stdout);
}

/* NCCL's logger is a part of its library too. */
ncclDebugLogger_t stubLogger(void) {
  return print;
}
