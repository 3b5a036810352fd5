/*
 * Replaces libcudart and records every call as the C compiler received it. With STUB_OLD it exports only the functions
 * of CUDA 11.0.
 */
#include "cuda/runtime.h"
#include "record.h"

static __thread int current_device;
#ifndef STUB_ON_DRIVER
static unsigned long next_device_address = 0x700000000000UL;
#endif
static int handles;
static char kernel_name[64];
static int driver_version = 13000;

static void *new_handle(long base) { return (void *)(base + 0x10L * ++handles); }

void stub_driver(int version) { driver_version = version; }

cudaError_t cudaRuntimeGetVersion(int *version) {
  CALL("cudaRuntimeGetVersion", " ");
  *version = 12040;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  CALL("cudaDriverGetVersion", " ");
  *version = driver_version;
  return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) {
  stub_record("cudaGetErrorName", " %d", error);
  return "cudaErrorStub";
}

const char *cudaGetErrorString(cudaError_t error) {
  stub_record("cudaGetErrorString", " %d", error);
  return "what the stub says";
}

cudaError_t cudaGetLastError(void) {
  stub_record("cudaGetLastError", " ");
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  CALL("cudaGetDeviceCount", " ");
  *count = 2;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  CALL("cudaGetDevice", " ");
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  CALL("cudaSetDevice", " %d", device);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  CALL("cudaDeviceGetAttribute", " %d %d", attribute, device);
  *value = 1000 + attribute;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
  CALL("cudaDeviceGetPCIBusId", " %d %d", length, device);
  snprintf(id, length, "0000:%02X:00.0", 0x41 + device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
  CALL("cudaDeviceGetByPCIBusId", " %s", id);
  *device = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  CALL("cudaDeviceGetStreamPriorityRange", " ");
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  CALL("cudaDeviceCanAccessPeer", " %d %d", device, peer);
  *can = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CALL("cudaDeviceEnablePeerAccess", " %d %u", peer, flags);
  return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CALL("cudaDeviceDisablePeerAccess", " %d", peer);
  return cudaSuccess;
}

/* Only the beginning of the structure is the same in every release. */
cudaError_t cudaGetDeviceProperties(void *properties, int device) {
  CALL("cudaGetDeviceProperties", " %d", device);
  sprintf(properties, "Stub GPU %d", device);
  size_t memory = 80UL << 30;
  memcpy((char *)properties + 288, &memory, sizeof(memory));
  return cudaSuccess;
}

#ifndef STUB_ON_DRIVER
cudaError_t cudaMalloc(void **out, size_t size) {
  CALL("cudaMalloc", " %zu", size);
  *out = (void *)next_device_address;
  next_device_address += (size + 255) / 256 * 256;
  return cudaSuccess;
}
#endif

#ifndef STUB_ON_DRIVER
cudaError_t cudaFree(void *address) {
  CALL("cudaFree", " %p", address);
  return cudaSuccess;
}
#endif

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  CALL("cudaMemGetInfo", " ");
  *free = 3UL << 32;
  *total = 80UL << 30;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address) {
  CALL("cudaPointerGetAttributes", " %p", address);
  attributes->type = cudaMemoryTypeDevice;
  attributes->device = 1;
  attributes->devicePointer = (void *)address;
  attributes->hostPointer = NULL;
  return cudaSuccess;
}

/* The memory is not zeroed, because CUDA does not guarantee it. */
cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int flags) {
  CALL("cudaHostAlloc", " %zu %u", size, flags);
  *out = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  memset(*out, 0xab, size);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address) {
  CALL("cudaFreeHost", " %p", address);
  free(address);
  return cudaSuccess;
}

#ifndef STUB_ON_DRIVER
cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned int flags) {
  CALL("cudaHostGetDevicePointer", " %p %u", host, flags);
  *out = (char *)host + 0x100000;
  return cudaSuccess;
}
#endif

cudaError_t cudaHostRegister(void *address, size_t size, unsigned int flags) {
  CALL("cudaHostRegister", " %p %zu %u", address, size, flags);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *address) {
  CALL("cudaHostUnregister", " %p", address);
  return cudaSuccess;
}

#ifndef STUB_ON_DRIVER
cudaError_t cudaMemcpy(void *target, const void *source, size_t count, cudaMemcpyKind kind) {
  CALL("cudaMemcpy", " %p %p %zu %d", target, source, count, kind);
  return cudaSuccess;
}
#endif

cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  CALL("cudaMemcpyAsync", " %p %p %zu %d %p", target, source, count, kind, (void *)stream);
  return cudaSuccess;
}

#ifndef STUB_ON_DRIVER
cudaError_t cudaMemset(void *target, int value, size_t count) {
  CALL("cudaMemset", " %p %d %zu", target, value, count);
  return cudaSuccess;
}
#endif

cudaError_t cudaMemsetAsync(void *target, int value, size_t count, cudaStream_t stream) {
  CALL("cudaMemsetAsync", " %p %d %zu %p", target, value, count, (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
  CALL("cudaStreamCreateWithFlags", " %u", flags);
  *out = new_handle(0x50000);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority) {
  CALL("cudaStreamCreateWithPriority", " %u %d", flags, priority);
  *out = new_handle(0x50000);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CALL("cudaStreamDestroy", " %p", (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CALL("cudaStreamQuery", " %p", (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  CALL("cudaStreamWaitEvent", " %p %p %u", (void *)stream, (void *)event, flags);
  return cudaSuccess;
}

struct host_call {
  cudaHostFn_t function;
  void *data;
};

static void *run_host_call(void *call) {
  ((struct host_call *)call)->function(((struct host_call *)call)->data);
  return NULL;
}

/* Calls the function on a thread that is unknown to Java, as CUDA does. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  CALL("cudaLaunchHostFunc", " %p", (void *)stream);
  struct host_call call = {function, data};
  pthread_t thread;
  pthread_create(&thread, NULL, run_host_call, &call);
  pthread_join(thread, NULL);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
  CALL("cudaEventCreateWithFlags", " %u", flags);
  *out = new_handle(0x60000);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CALL("cudaEventDestroy", " %p", (void *)event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CALL("cudaEventRecord", " %p %p", (void *)event, (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  CALL("cudaEventQuery", " %p", (void *)event);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *millis, cudaEvent_t start, cudaEvent_t end) {
  CALL("cudaEventElapsedTime", " %p %p", (void *)start, (void *)end);
  *millis = 1.25f;
  return cudaSuccess;
}

/* Only one stream can be capturing at a time. */
static cudaStream_t capturing;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  CALL("cudaStreamBeginCapture", " %p %d", (void *)stream, mode);
  capturing = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  CALL("cudaStreamEndCapture", " %p", (void *)stream);
  capturing = NULL;
  *out = new_handle(0x80000);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *out) {
  CALL("cudaStreamIsCapturing", " %p", (void *)stream);
  *out = stream == capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  CALL("cudaGraphLaunch", " %p %p", (void *)graph, (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  CALL("cudaGraphExecDestroy", " %p", (void *)graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  CALL("cudaGraphDestroy", " %p", (void *)graph);
  return cudaSuccess;
}

/*
 * The kernel's name encodes its parameters, after the last '_': p pointer, i int, l long, f float, s a struct of 200
 * bytes. The first and last byte of the struct are recorded.
 */
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  char values[512] = "";
  size_t used = 0;
  const char *types = strrchr(kernel_name, '_');
  if (types && types[1 + strspn(types + 1, "pilfs")]) /* the suffix does not encode parameters */
    types = NULL;
  for (int i = 0; types && types[i + 1]; i++) {
    void *value = arguments[i];
    char *end = values + used;
    size_t room = sizeof(values) - used;
    switch (types[i + 1]) {
      case 'p': used += snprintf(end, room, " %p", *(void **)value); break;
      case 'i': used += snprintf(end, room, " %d", *(int *)value); break;
      case 'l': used += snprintf(end, room, " %ld", *(long *)value); break;
      case 's': used += snprintf(end, room, " {%02x..%02x}", ((unsigned char *)value)[0], ((unsigned char *)value)[199]); break;
      case 'f': used += snprintf(end, room, " %g", *(float *)value); break;
    }
  }
  CALL("cudaLaunchKernel", " %p %ux%ux%u %ux%ux%u%s %zu %p", function, grid.x, grid.y, grid.z, block.x, block.y, block.z, values, shared, (void *)stream);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared) {
  CALL("cudaOccupancyMaxActiveBlocksPerMultiprocessor", " %p %d %zu", function, threads, shared);
  *blocks = 7;
  return cudaSuccess;
}

#ifndef STUB_OLD

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  CALL("cudaGraphInstantiateWithFlags", " %p %llu", (void *)graph, flags);
  *out = new_handle(0x90000);
  return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, cudaJitOption *options, void **values, unsigned int count,
                                cudaLibraryOption *library_options, void **library_values, unsigned int library_count) {
  stub_record("cudaLibraryLoadData", " %s %d %d %ld %u %p %p %u", (const char *)code, options[0], options[1], (long)values[1], count,
              (void *)library_options, (void *)library_values, library_count);
  int answer = stub_answer("cudaLibraryLoadData");
  if (answer) {
    snprintf(values[0], (size_t)values[1], "ptxas: line 3: unknown instruction");
    return answer;
  }
  *out = new_handle(0xa0000);
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  CALL("cudaLibraryUnload", " %p", (void *)library);
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
  CALL("cudaLibraryGetKernel", " %p %s", (void *)library, name);
  snprintf(kernel_name, sizeof(kernel_name), "%s", name);
  *out = new_handle(0xb0000);
  return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  CALL("cudaKernelSetAttributeForDevice", " %p %d %d %d", (void *)kernel, attribute, value, device);
  return cudaSuccess;
}

#endif
