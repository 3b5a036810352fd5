/* Errors and versions. */
#ifndef MILLRACE_CUDA_ERROR_H
#define MILLRACE_CUDA_ERROR_H

#include "cuda/types.h"

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
/* The thread's last error; the first of the two also clears it. */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

/* 1000 * major + 10 * minor. The driver's is that of the newest CUDA it supports, 0 if none. */
cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
cudaError_t cudaDriverGetVersion(int *driverVersion);

#endif
