/* Interface between the emulated CUDA and the interpreter of NCCL's kernels. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct Launch {
  const char *kernel; /* mangled name of the host stub */
  unsigned grid;
  void *arguments;
  size_t size; /* of the arguments, in bytes */
};

/** Prints a message and ends the process, because this part of CUDA or NCCL is not emulated. */
[[noreturn]] void unsupported(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Returns the mangled name of a kernel. The host stub has this address. */
const char *functionName(const void *stub);

/** Returns the function of cuda.cpp with this name, or a function that fails with the name. */
void *cudaFunction(const char *name);

/** Gives the interpreter the content of ncclDevFuncRowToId. */
void setFunctionTable(const int *ids, size_t count);

/** Runs one kernel on new threads. Returns when all have ended. */
void runKernel(const Launch &launch);
