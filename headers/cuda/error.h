/* Errors and versions. */
#ifndef MILLRACE_CUDA_ERROR_H
#define MILLRACE_CUDA_ERROR_H

#include "cuda/types.h"

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
/* Returns and clears the thread's last error. */
cudaError_t cudaGetLastError(void);

/* 1000 * major + 10 * minor. The driver's version is the newest CUDA that it supports, 0 if none. */
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaDriverGetVersion(int *driverVersion);

#endif
