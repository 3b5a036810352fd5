/*
 * Memory of a connection as NCCL lays it out if the network accepts GPU memory (HOST_SLOTS=device). The buffers of
 * Simple and LL128 are in GPU memory. LL's buffer is in host memory, separate from them. With HOST_SLOTS=apart NCCL
 * prepared this layout but the GPU did not support it, so all buffers are in host memory. The GPU is the stub of
 * libcuda.
 */
#ifndef MILLRACE_TEST_DEVICE_SLOTS_H
#define MILLRACE_TEST_DEVICE_SLOTS_H

#include "host.h"

static inline int host_slots_are(const char *kind) {
  const char *set = getenv("HOST_SLOTS");
  return set && strcmp(set, kind) == 0;
}

static inline int host_slots_on_device(void) {
  return host_slots_are("device");
}

static inline void *stub_of_cuda(const char *name) {
  static void *library;
  if (!library)
    library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library, "%s", dlerror());
  return symbol(library, name);
}

static inline char *allocate_on_device(size_t bytes, char **memory) {
  char *(*allocate)(size_t, char **) = (char *(*)(size_t, char **))stub_of_cuda("stubAllocate");
  return allocate(bytes, memory);
}

static inline void free_on_device(char *address) {
  void (*free_memory)(char *) = (void (*)(char *))stub_of_cuda("stubFree");
  free_memory(address);
}

/* Returns the address at which a processor can access the data at a device address. */
static inline void *seen_by_host(void *address) {
  char *(*memory)(char *) = (char *(*)(char *))stub_of_cuda("stubMemory");
  return memory(address);
}

static inline void hold_copies(long looks) {
  void (*hold)(long) = (void (*)(long))stub_of_cuda("stubHold");
  hold(looks);
}

static inline void make_all_copies(void) {
  void (*make)(void) = (void (*)(void))stub_of_cuda("stubMakeAll");
  make();
}

/* Allocates physical segments at consecutive addresses, in host or device memory. */
static inline char *allocate_segments(int count, const size_t *bytes, int ofHost, char **memory) {
  char *(*allocate)(int, const size_t *, int, char **) =
      (char *(*)(int, const size_t *, int, char **))stub_of_cuda("stubAllocateSegments");
  return allocate(count, bytes, ofHost, memory);
}

static inline void print_copies(int rank) {
  long (*copies)(int) = (long (*)(int))stub_of_cuda("stubCopies");
  int (*in_programs_context)(void) = (int (*)(void))stub_of_cuda("stubInProgramsContext");
  printf("rank %d: %ld copies within devices, %ld with the host, %d in the program's context\n", rank, copies(1), copies(0),
         in_programs_context());
}

#endif
