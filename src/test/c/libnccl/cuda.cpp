/*
 * CUDA on CPU threads: the functions of the runtime and of the driver that NCCL calls. Device memory is host memory.
 * Each stream is a queue with a thread. Signatures and values follow CUDA's documentation.
 */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum Result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_READY = 600 };
constexpr int DEVICES = 8;
constexpr int VERSION = 13000;
constexpr size_t DEVICE_BYTES = size_t(4) << 30;

thread_local int currentDevice;
thread_local int lastError;
thread_local int captureMode;

int result(int error) {
  if (error != SUCCESS) lastError = error;
  return error;
}

/** An event. Its state is the number of the newest record that was requested, and of the newest that was reached. */
struct Event {
  std::mutex lock;
  std::condition_variable changed;
  uint64_t requested = 0;
  uint64_t reached = 0;

  uint64_t request() {
    std::lock_guard<std::mutex> guard(lock);
    return ++requested;
  }

  void reach(uint64_t record) {
    std::lock_guard<std::mutex> guard(lock);
    if (record > reached) reached = record;
    changed.notify_all();
  }

  uint64_t newest() {
    std::lock_guard<std::mutex> guard(lock);
    return requested;
  }

  void await(uint64_t record) {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [&] { return reached >= record; });
  }

  bool complete() {
    std::lock_guard<std::mutex> guard(lock);
    return reached == requested;
  }
};

class Stream {
public:
  Stream() : worker([this] { work(); }) {}

  ~Stream() {
    {
      std::lock_guard<std::mutex> guard(lock);
      closed = true;
    }
    changed.notify_all();
    worker.join();
  }

  void add(std::function<void()> task) {
    {
      std::lock_guard<std::mutex> guard(lock);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void synchronize() {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [&] { return tasks.empty(); });
  }

private:
  /** Runs the tasks. A task stays in the queue until it has ended. */
  void work() {
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
      changed.wait(guard, [&] { return closed || !tasks.empty(); });
      if (tasks.empty()) return;
      std::function<void()> task = std::move(tasks.front());
      guard.unlock();
      task();
      task = nullptr;
      guard.lock();
      tasks.pop_front();
      changed.notify_all();
    }
  }

  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool closed = false;
  std::thread worker;
};

/** Returns the stream of a handle. The handles 0 to 2 name the default stream; it exists until the process ends. */
Stream &stream(Stream *handle) {
  static auto *defaultStream = new Stream;
  return reinterpret_cast<uintptr_t>(handle) <= 2 ? *defaultStream : *handle;
}

struct Memory {
  size_t size;
  int device;
  bool host;
};

std::mutex memoryLock;

std::map<uintptr_t, Memory> &memories() {
  static auto *all = new std::map<uintptr_t, Memory>;
  return *all;
}

uintptr_t number(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/** Returns the memory that contains the address and its base; size 0 if CUDA does not know the address. */
std::pair<uintptr_t, Memory> find(const void *pointer) {
  std::lock_guard<std::mutex> guard(memoryLock);
  auto after = memories().upper_bound(number(pointer));
  if (after != memories().begin()) {
    auto found = std::prev(after);
    if (number(pointer) - found->first < found->second.size) return *found;
  }
  return {0, {0, 0, true}};
}

void add(const void *pointer, size_t size, bool host) {
  std::lock_guard<std::mutex> guard(memoryLock);
  memories()[number(pointer)] = {size, currentDevice, host};
}

void remove(const void *pointer) {
  std::lock_guard<std::mutex> guard(memoryLock);
  memories().erase(number(pointer));
}

int allocate(void **pointer, size_t size, bool host) {
  size_t whole = (size + 4095) / 4096 * 4096;
  *pointer = aligned_alloc(4096, whole == 0 ? 4096 : whole);
  if (*pointer == nullptr) return result(OUT_OF_MEMORY);
  add(*pointer, size, host);
  return SUCCESS;
}

int release(void *pointer) {
  remove(pointer);
  free(pointer);
  return SUCCESS;
}

void writeBusId(char *text, int size, int device) { snprintf(text, size, "0000:%02x:00.0", device + 1); }

int attribute(int *value, int attribute) {
  switch (attribute) {
  case 16: *value = 132; break;              // multiprocessors
  case 75: *value = 9; break;                // major number of the compute capability
  case 97: *value = 227 << 10; break;        // shared memory per block, in bytes
  default: *value = 0;                       // no GPUDirect, virtual memory management, multicast or fabric
  }
  return SUCCESS;
}

void launch(const void *stub, unsigned grid, void *arguments, size_t size, Stream *on) {
  // The caller may reuse the block of arguments after the launch.
  auto copy = std::make_shared<std::vector<uint64_t>>((size + 7) / 8);
  memcpy(copy->data(), arguments, size);
  stream(on).add([=] { runKernel({functionName(stub), grid, copy->data(), size}); });
}

} // namespace

// ---- Devices ----

API cudaGetDevice(int *device) {
  *device = currentDevice;
  return SUCCESS;
}

API cudaSetDevice(int device) {
  if (device < 0 || device >= DEVICES) return result(101);
  currentDevice = device;
  return SUCCESS;
}

API cudaGetDeviceCount(int *count) {
  *count = DEVICES;
  return SUCCESS;
}

API cudaDriverGetVersion(int *version) {
  *version = VERSION;
  return SUCCESS;
}

API cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }
API cudaDeviceGetAttribute(int *value, int name, int) { return attribute(value, name); }

API cudaDeviceGetPCIBusId(char *text, int size, int device) {
  writeBusId(text, size, device);
  return SUCCESS;
}

API cudaDeviceGetByPCIBusId(int *device, const char *text) {
  unsigned domain, bus;
  if (sscanf(text, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > DEVICES) return result(INVALID_VALUE);
  *device = bus - 1;
  return SUCCESS;
}

/** Writes the fields of cudaDeviceProp that NCCL reads. Their offsets are the same in CUDA 12 and 13. */
API cudaGetDeviceProperties(void *properties, int) {
  char *bytes = static_cast<char *>(properties);
  snprintf(bytes, 256, "CPU threads");
  memcpy(bytes + 288, &DEVICE_BYTES, sizeof DEVICE_BYTES);
  int major = 9, minor = 0;
  memcpy(bytes + 360, &major, sizeof major);
  memcpy(bytes + 364, &minor, sizeof minor);
  return SUCCESS;
}

API cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 0;
  return SUCCESS;
}

API cudaDeviceSetLimit(int, size_t) { return SUCCESS; }

// ---- Errors ----

API cudaGetLastError() {
  int error = lastError;
  lastError = SUCCESS;
  return error;
}

extern "C" __attribute__((visibility("default"))) const char *cudaGetErrorString(int error) {
  return error == SUCCESS ? "no error" : error == NOT_READY ? "not ready" : error == OUT_OF_MEMORY ? "out of memory"
      : error == 801 ? "not supported" : "error of the emulated CUDA";
}

// ---- Memory ----

API cudaMalloc(void **pointer, size_t size) { return allocate(pointer, size, false); }
API cudaHostAlloc(void **pointer, size_t size, unsigned) { return allocate(pointer, size, true); }
API cudaFree(void *pointer) { return release(pointer); }
API cudaFreeHost(void *pointer) { return release(pointer); }

API cudaHostRegister(void *pointer, size_t size, unsigned) {
  add(pointer, size, true);
  return SUCCESS;
}

API cudaHostUnregister(void *pointer) {
  remove(pointer);
  return SUCCESS;
}

API cudaHostGetDevicePointer(void **device, void *host, unsigned) {
  *device = host;
  return SUCCESS;
}

/** Writes the first four fields of cudaPointerAttributes. */
API cudaPointerGetAttributes(void *attributes, const void *pointer) {
  struct Attributes {
    int type, device;
    const void *devicePointer, *hostPointer;
  };
  Memory memory = find(pointer).second;
  bool known = memory.size > 0;
  *static_cast<Attributes *>(attributes) = {known ? memory.host ? 1 : 2 : 0, known ? memory.device : -2,
      known ? pointer : nullptr, memory.host ? pointer : nullptr};
  return SUCCESS;
}

API cudaMemcpyAsync(void *target, const void *source, size_t size, int, Stream *on) {
  if (find(source).second.size > 0) {
    stream(on).add([=] { memmove(target, source, size); });
    return SUCCESS;
  }
  // CUDA has read pageable memory when the call returns.
  auto *begin = static_cast<const char *>(source);
  auto copy = std::make_shared<std::vector<char>>(begin, begin + size);
  stream(on).add([=] { memcpy(target, copy->data(), size); });
  return SUCCESS;
}

API cudaMemcpy(void *target, const void *source, size_t size, int kind) {
  cudaMemcpyAsync(target, source, size, kind, nullptr);
  stream(nullptr).synchronize();
  return SUCCESS;
}

API cudaMemsetAsync(void *target, int value, size_t size, Stream *on) {
  stream(on).add([=] { memset(target, value, size); });
  return SUCCESS;
}

API cudaMemset(void *target, int value, size_t size) {
  cudaMemsetAsync(target, value, size, nullptr);
  stream(nullptr).synchronize();
  return SUCCESS;
}

API cudaMemPoolCreate(void **pool, const void *) {
  *pool = new char;
  return SUCCESS;
}

API cudaMemPoolDestroy(char *pool) {
  delete pool;
  return SUCCESS;
}

API cudaMemPoolSetAttribute(void *, int, void *) { return SUCCESS; }
API cudaMallocFromPoolAsync(void **pointer, size_t size, void *, Stream *) { return allocate(pointer, size, false); }

API cudaFreeAsync(void *pointer, Stream *on) {
  stream(on).add([=] { release(pointer); });
  return SUCCESS;
}

// ---- Streams and events ----

API cudaStreamCreateWithFlags(Stream **created, unsigned) {
  *created = new Stream;
  return SUCCESS;
}

/** Ends the stream's tasks first. CUDA returns at once instead. */
API cudaStreamDestroy(Stream *handle) {
  delete handle;
  return SUCCESS;
}

API cudaStreamSynchronize(Stream *handle) {
  stream(handle).synchronize();
  return SUCCESS;
}

API cudaStreamGetId(Stream *handle, unsigned long long *id) {
  *id = number(&stream(handle));
  return SUCCESS;
}

API cudaStreamWaitEvent(Stream *handle, Event *event, unsigned) {
  uint64_t record = event->newest();
  stream(handle).add([=] { event->await(record); });
  return SUCCESS;
}

API cudaLaunchHostFunc(Stream *handle, void (*function)(void *), void *argument) {
  stream(handle).add([=] { function(argument); });
  return SUCCESS;
}

API cudaEventCreateWithFlags(Event **created, unsigned) {
  *created = new Event;
  return SUCCESS;
}

API cudaEventCreate(Event **created) { return cudaEventCreateWithFlags(created, 0); }

/** Ends after the event's records. CUDA returns at once instead. */
API cudaEventDestroy(Event *event) {
  event->await(event->newest());
  delete event;
  return SUCCESS;
}

API cudaEventRecord(Event *event, Stream *on) {
  uint64_t record = event->request();
  stream(on).add([=] { event->reach(record); });
  return SUCCESS;
}

API cudaEventQuery(Event *event) { return event->complete() ? SUCCESS : NOT_READY; }

API cudaEventSynchronize(Event *event) {
  event->await(event->newest());
  return SUCCESS;
}

// ---- Graphs: no stream is in capture ----

API cudaThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return SUCCESS;
}

API cudaStreamGetCaptureInfo(Stream *, int *status, void *, void *, void *, void *, void *) {
  *status = 0;
  return SUCCESS;
}

API cudaStreamIsCapturing(Stream *, int *status) {
  *status = 0;
  return SUCCESS;
}

// ---- Kernels ----

API cudaFuncGetAttributes(void *, const void *) { return SUCCESS; }
API cudaFuncSetAttribute(const void *, int, int) { return SUCCESS; }

/** Returns the host stub itself as the driver's handle of the kernel. */
API cudaGetFuncBySymbol(const void **function, const void *stub) {
  *function = stub;
  return SUCCESS;
}

/** Launches a kernel whose arguments are one block, which the array extra describes. */
API cuLaunchKernelEx(const void *configuration, const void *function, void **parameters, void **extra) {
  struct Configuration {
    unsigned grid[3], block[3], sharedBytes;
    Stream *stream;
    void *attributes;
    unsigned attributeCount;
  };
  auto *config = static_cast<const Configuration *>(configuration);
  if (parameters != nullptr) unsupported("cuLaunchKernelEx with separate parameters");
  launch(function, config->grid[0], extra[1], *static_cast<size_t *>(extra[3]), config->stream);
  return SUCCESS;
}

// ---- The driver's other functions ----

API cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return SUCCESS;
}

API cuDeviceGetAttribute(int *value, int name, int) { return attribute(value, name); }

API cuDeviceGetUuid(char *uuid, int device) {
  memset(uuid, 0, 16);
  uuid[0] = 'c';
  uuid[15] = device;
  return SUCCESS;
}

API cuGetErrorString(int error, const char **text) {
  *text = cudaGetErrorString(error);
  return SUCCESS;
}

API cuGetErrorName(int error, const char **text) { return cuGetErrorString(error, text); }

API cuMemGetAddressRange(uintptr_t *base, size_t *size, const void *pointer) {
  auto [begin, memory] = find(pointer);
  if (memory.size == 0) return INVALID_VALUE;
  if (base != nullptr) *base = begin;
  if (size != nullptr) *size = memory.size;
  return SUCCESS;
}

API cuMemGetAllocationGranularity(size_t *bytes, const void *, int) {
  *bytes = 2 << 20;
  return SUCCESS;
}

API cuCtxGetCurrent(void **context) {
  *context = &currentDevice;
  return SUCCESS;
}

API cuCtxGetDevice(int *device) { return cudaGetDevice(device); }

/** Finds the function of the driver in this library. An absent one fails with its name when it is called. */
API cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long, int *status) {
  *function = cudaFunction(name);
  if (status != nullptr) *status = 0;
  return SUCCESS;
}
