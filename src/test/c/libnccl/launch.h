/* Interface between the emulated CUDA and the interpreter of NCCL's kernels. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>

#define API extern "C" __attribute__((visibility("default"))) int

/** Prints a message and ends the process: an argument is wrong, or a part of CUDA or NCCL is not emulated. */
[[noreturn]] void unsupported(const char *format, ...) __attribute__((visibility("default"), format(printf, 1, 2)));

/** Returns the mangled name of a kernel. The host stub has this address. */
const char *functionName(const void *stub);

/** Returns the function of cuda.cpp with this name, or a function that fails with the name. */
void *cudaFunction(const char *name);

/** Counts an event by its name. The process prints the counts when it ends. */
__attribute__((visibility("default"))) void count(const std::string &name);

/** Gives the interpreter the content of ncclDevFuncRowToId. */
void setFunctionTable(const int *ids, size_t count);

/** Runs a kernel of collectives on new threads. Returns when all have ended. The kernel is the mangled name. */
void runKernel(const char *kernel, const void *block, size_t size);

/** Multiplies the elements by the operator's argument. NCCL has no kernel for other operators on one rank. */
void reduceOnOneRank(const char *kernel, char *target, const char *source, size_t elements, uint64_t argument,
                     bool argumentIsPointer);
