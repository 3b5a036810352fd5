/* The stub of libcudart on top of the stub of libcuda. The driver's functions copy its memory. */
#define _GNU_SOURCE
#define STUB_ON_DRIVER
#include "cudart.c"

#include <dlfcn.h>

static void *of_driver(const char *name) {
  static void *library;
  if (!library)
    library = dlopen("libcuda.so.1", RTLD_NOW);
  void *found = library ? dlsym(library, name) : NULL;
  if (!found)
    abort();
  return found;
}

/*
 * Records nothing. No code runs on this device, so launches of kernels are refused. With STUB_CUDA_HANGS a launch
 * succeeds, and its kernel never starts.
 */
__attribute__((constructor)) static void begin(void) {
  stub_record_calls(0);
  if (!getenv("STUB_CUDA_HANGS"))
    stub_fail("cudaLaunchKernel", 719 /* cudaErrorLaunchFailure */, 1 << 30);
}

static char *memory_of(const void *address) {
  return ((char *(*)(char *))of_driver("stubMemory"))((char *)address);
}

/* The memory is not zeroed, because CUDA does not guarantee it. */
cudaError_t cudaMalloc(void **out, size_t size) {
  char *memory;
  *out = ((char *(*)(size_t, char **))of_driver("stubAllocate"))(size, &memory);
  memset(memory, 0xab, size);
  return cudaSuccess;
}

cudaError_t cudaFree(void *address) {
  ((void (*)(char *))of_driver("stubFree"))(address);
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned int flags) {
  (void)flags;
  *out = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t count, cudaMemcpyKind kind) {
  (void)kind;
  memcpy(memory_of(target), memory_of(source), count);
  return cudaSuccess;
}

cudaError_t cudaMemset(void *target, int value, size_t count) {
  memset(memory_of(target), value, count);
  return cudaSuccess;
}
