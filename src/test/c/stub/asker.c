/* A part of a program that is loaded late and queries NCCL's errors. */
#include "nccl/api.h"

ncclResult_t askForError(ncclComm_t comm, ncclResult_t *error) {
  return ncclCommGetAsyncError(comm, error);
}
