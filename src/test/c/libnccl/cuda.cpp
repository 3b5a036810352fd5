/*
 * CUDA on CPU threads: the functions of the runtime and of the driver that NCCL and the programs of bench/gpu call.
 * Device memory is host memory. A stream is a queue with a thread. Signatures and values follow CUDA's documentation.
 */
#include "launch.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

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

/**
 * A captured graph. Its nodes are tasks in the order of their creation. A launch runs them in this order on one stream,
 * which all dependencies permit.
 */
struct Graph {
  bool capturing = true;
  std::shared_ptr<Graph> self; /* null after the capture */
  std::vector<std::function<void()>> tasks;
  std::vector<std::pair<void (*)(void *), void *>> destructors;

  ~Graph() {
    for (auto [function, argument] : destructors) function(argument);
  }
};

/** An event. Its state is the number of the newest record that was requested, and of the newest that was reached. */
struct Event {
  std::mutex lock;
  std::condition_variable changed;
  std::atomic<uint64_t> requested = 0;
  std::atomic<uint64_t> reached = 0;
  std::chrono::steady_clock::time_point time; /* of the newest record that was reached */
  std::weak_ptr<Graph> capture; /* graph of the newest record; empty if that record was not captured */

  void reach(uint64_t record) {
    std::lock_guard<std::mutex> guard(lock);
    if (record > reached) reached = record;
    time = std::chrono::steady_clock::now();
    changed.notify_all();
  }

  void await(uint64_t record) {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [&] { return reached >= record; });
  }

  bool complete() const { return reached == requested; }
};

class Stream {
public:
  Stream() : worker([this](std::stop_token end) { work(end); }) {
    std::lock_guard<std::mutex> guard(allLock);
    all.insert(this);
  }

  /** Ends the tasks first. */
  ~Stream() {
    std::lock_guard<std::mutex> guard(allLock);
    all.erase(this);
  }

  /** Returns the graph that captures this stream; null if none. */
  std::shared_ptr<Graph> capture() {
    std::lock_guard<std::mutex> guard(lock);
    auto graph = captured.lock();
    return graph != nullptr && graph->capturing ? graph : nullptr;
  }

  void capture(const std::shared_ptr<Graph> &graph) {
    std::lock_guard<std::mutex> guard(lock);
    captured = graph;
  }

  int add(std::function<void()> task) {
    if (auto graph = capture()) {
      graph->tasks.push_back(std::move(task));
      return SUCCESS;
    }
    std::lock_guard<std::mutex> guard(lock);
    tasks.push_back(std::move(task));
    changed.notify_all();
    return SUCCESS;
  }

  int synchronize() {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [&] { return tasks.empty(); });
    return SUCCESS;
  }

  static void synchronizeAll() {
    std::lock_guard<std::mutex> guard(allLock);
    for (Stream *each : all) each->synchronize();
  }

  bool complete() {
    std::lock_guard<std::mutex> guard(lock);
    return tasks.empty();
  }

private:
  inline static std::mutex allLock;
  inline static std::set<Stream *> &all = *new std::set<Stream *>; /* remains when the process ends */

  /** Runs the tasks. A task stays in the queue until it has ended. */
  void work(std::stop_token end) {
    std::unique_lock<std::mutex> guard(lock);
    while (changed.wait(guard, end, [&] { return !tasks.empty(); })) {
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
  std::condition_variable_any changed;
  std::deque<std::function<void()>> tasks;
  std::weak_ptr<Graph> captured;
  std::jthread worker; /* The last member, so that it ends first. */
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
  int handle; /* of mapped memory; -1 for other memory */
};

std::mutex memoryLock;
std::map<uintptr_t, Memory> &memories = *new std::map<uintptr_t, Memory>;

uintptr_t number(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

/** Returns the memory that contains the address and its base; size 0 if CUDA does not know the address. */
std::pair<uintptr_t, Memory> find(const void *pointer) {
  std::lock_guard<std::mutex> guard(memoryLock);
  auto after = memories.upper_bound(number(pointer));
  if (after != memories.begin()) {
    auto found = std::prev(after);
    if (number(pointer) - found->first < found->second.size) return *found;
  }
  return {0, {0, 0, true, -1}};
}

int add(const void *pointer, size_t size, bool host, int handle = -1) {
  std::lock_guard<std::mutex> guard(memoryLock);
  memories[number(pointer)] = {size, currentDevice, host, handle};
  return SUCCESS;
}

int remove(const void *pointer) {
  std::lock_guard<std::mutex> guard(memoryLock);
  memories.erase(number(pointer));
  return SUCCESS;
}

int allocate(void **pointer, size_t size, bool host) {
  size_t whole = (size + 4095) / 4096 * 4096;
  *pointer = aligned_alloc(4096, whole == 0 ? 4096 : whole);
  if (*pointer == nullptr) return result(OUT_OF_MEMORY);
  return add(*pointer, size, host);
}

int release(void *pointer) {
  remove(pointer);
  free(pointer);
  return SUCCESS;
}

template <typename T, typename V> int store(T *result, V value) {
  *result = static_cast<T>(value);
  return SUCCESS;
}

int attribute(int *value, int attribute) {
  switch (attribute) {
  case 16: *value = 132; break;              // multiprocessors
  case 75: *value = 9; break;                // major number of the compute capability
  case 97: *value = 227 << 10; break;        // shared memory per block, in bytes
  case 102: *value = 1; break;               // virtual memory management
  case 116: *value = 1; break;               // GPUDirect RDMA
  default: *value = 0;                       // no DMA-BUF, multicast or fabric
  }
  return SUCCESS;
}

} // namespace

// ---- Devices ----

API cudaGetDevice(int *device) { return store(device, currentDevice); }

API cudaSetDevice(int device) {
  if (device < 0 || device >= DEVICES) return result(101);
  currentDevice = device;
  return SUCCESS;
}

API cudaGetDeviceCount(int *count) { return store(count, DEVICES); }
API cudaDriverGetVersion(int *version) { return store(version, VERSION); }
API cudaRuntimeGetVersion(int *version) { return cudaDriverGetVersion(version); }
API cudaDeviceGetAttribute(int *value, int name, int) { return attribute(value, name); }

API cudaDeviceGetPCIBusId(char *text, int size, int device) {
  snprintf(text, size, "0000:%02x:00.0", device + 1);
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

API cudaDeviceCanAccessPeer(int *can, int, int) { return store(can, 0); }
API cudaDeviceSetLimit(int, size_t) { return SUCCESS; }

API cudaDeviceSynchronize() {
  Stream::synchronizeAll();
  return SUCCESS;
}

/** Shortens a wait: a thread of libnccl polls for 500 ms at a time, and the end of a communicator waits for it. */
API poll(pollfd *files, nfds_t count, int milliseconds) {
  if (count == 1 && milliseconds == 500) milliseconds = 20;
  timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  return ppoll(files, count, milliseconds < 0 ? nullptr : &time, nullptr);
}

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
API cudaHostRegister(void *pointer, size_t size, unsigned) { return add(pointer, size, true); }
API cudaHostUnregister(void *pointer) { return remove(pointer); }
API cudaHostGetDevicePointer(void **device, void *host, unsigned) { return store(device, host); }

API cudaMemGetInfo(size_t *free, size_t *total) {
  std::lock_guard<std::mutex> guard(memoryLock);
  *free = *total = DEVICE_BYTES;
  for (auto &[address, memory] : memories) *free -= memory.host ? 0 : memory.size;
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
  if (find(source).second.size > 0) return stream(on).add([=] { memmove(target, source, size); });
  // CUDA has read pageable memory when the call returns.
  auto *begin = static_cast<const char *>(source);
  auto copy = std::make_shared<std::vector<char>>(begin, begin + size);
  return stream(on).add([=] { memcpy(target, copy->data(), size); });
}

API cudaMemcpy(void *target, const void *source, size_t size, int kind) {
  cudaMemcpyAsync(target, source, size, kind, nullptr);
  return stream(nullptr).synchronize();
}

API cudaMemsetAsync(void *target, int value, size_t size, Stream *on) {
  return stream(on).add([=] { memset(target, value, size); });
}

API cudaMemset(void *target, int value, size_t size) {
  cudaMemsetAsync(target, value, size, nullptr);
  return stream(nullptr).synchronize();
}

/** The handle of a pool has no meaning. */
API cudaMemPoolCreate(void **pool, const void *) { return store(pool, &currentDevice); }
API cudaMemPoolDestroy(void *) { return SUCCESS; }
API cudaMemPoolSetAttribute(void *, int, void *) { return SUCCESS; }
API cudaMallocFromPoolAsync(void **pointer, size_t size, void *, Stream *) { return allocate(pointer, size, false); }
API cudaFreeAsync(void *pointer, Stream *on) { return stream(on).add([=] { release(pointer); }); }

// ---- Streams and events ----

API cudaStreamCreateWithFlags(Stream **created, unsigned) { return store(created, new Stream); }

/** CUDA returns at once instead, and ends the stream's tasks later. */
API cudaStreamDestroy(Stream *handle) {
  delete handle;
  return SUCCESS;
}

API cudaStreamSynchronize(Stream *handle) { return stream(handle).synchronize(); }
API cudaStreamQuery(Stream *handle) { return stream(handle).complete() ? SUCCESS : NOT_READY; }
API cudaStreamGetId(Stream *handle, unsigned long long *id) { return store(id, number(&stream(handle))); }

/** A captured event brings the stream into the capture. */
API cudaStreamWaitEvent(Stream *handle, Event *event, unsigned flags) {
  constexpr unsigned EXTERNAL = 1;
  auto graph = event->capture.lock();
  uint64_t record = event->requested;
  if (graph == nullptr || !graph->capturing)
    return stream(handle).add([=] { event->await(flags == EXTERNAL ? event->requested.load() : record); });
  stream(handle).capture(graph);
  return SUCCESS;
}

API cudaLaunchHostFunc(Stream *handle, void (*function)(void *), void *argument) {
  return stream(handle).add([=] { function(argument); });
}

API cudaEventCreateWithFlags(Event **created, unsigned) { return store(created, new Event); }
API cudaEventCreate(Event **created) { return cudaEventCreateWithFlags(created, 0); }

API cudaEventSynchronize(Event *event) {
  event->await(event->requested);
  return SUCCESS;
}

/** Ends after the event's records. CUDA returns at once instead. */
API cudaEventDestroy(Event *event) {
  cudaEventSynchronize(event);
  delete event;
  return SUCCESS;
}

API cudaEventRecord(Event *event, Stream *on) {
  auto graph = stream(on).capture();
  event->capture = graph;
  if (graph != nullptr) return SUCCESS;
  uint64_t record = ++event->requested;
  return stream(on).add([=] { event->reach(record); });
}

API cudaEventQuery(Event *event) { return event->complete() ? SUCCESS : NOT_READY; }

API cudaEventElapsedTime(float *milliseconds, Event *start, Event *end) {
  return store(milliseconds, std::chrono::duration<float, std::milli>(end->time - start->time).count());
}

// ---- Graphs ----

API cudaThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(*mode, captureMode);
  return SUCCESS;
}

/** Stores a reference that cudaStreamEndCapture returns. */
API cudaStreamBeginCapture(Stream *handle, int) {
  auto graph = std::make_shared<Graph>();
  graph->self = graph;
  stream(handle).capture(graph);
  return SUCCESS;
}

API cudaStreamEndCapture(Stream *handle, std::shared_ptr<Graph> **graph) {
  *graph = new std::shared_ptr<Graph>(stream(handle).capture());
  (**graph)->self.reset();
  (**graph)->capturing = false;
  return SUCCESS;
}

/** Reports no dependencies: the order of the nodes contains them. */
API cudaStreamGetCaptureInfo(Stream *handle, int *status, uint64_t *id, void *graph, const void **dependencies,
                             const void **edges, size_t *count) {
  auto capture = stream(handle).capture();
  *status = capture != nullptr;
  if (id != nullptr) *id = number(capture.get());
  if (graph != nullptr) *static_cast<Graph **>(graph) = capture.get();
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return SUCCESS;
}

API cudaStreamIsCapturing(Stream *handle, int *status) { return store(status, stream(handle).capture() != nullptr); }
API cudaStreamUpdateCaptureDependencies(Stream *, void *, const void *, size_t, unsigned) { return SUCCESS; }
API cudaGraphAddDependencies(Graph *, const void *, const void *, const void *, size_t) { return SUCCESS; }

API cudaGraphAddEventRecordNode(void **node, Graph *graph, const void *, size_t, Event *event) {
  *node = graph;
  graph->tasks.push_back([=] { event->reach(++event->requested); });
  return SUCCESS;
}

using UserObject = std::pair<void (*)(void *), void *>;

API cudaUserObjectCreate(UserObject **object, void *argument, void (*destructor)(void *), unsigned, unsigned) {
  return store(object, new UserObject(destructor, argument));
}

/** Gives the object to the graph. */
API cudaGraphRetainUserObject(Graph *graph, UserObject *object, unsigned, unsigned) {
  graph->destructors.push_back(*object);
  delete object;
  return SUCCESS;
}

API cudaGraphInstantiateWithFlags(std::shared_ptr<Graph> **executable, std::shared_ptr<Graph> *graph,
                                  unsigned long long) {
  *executable = new std::shared_ptr<Graph>(*graph);
  return SUCCESS;
}

API cudaGraphLaunch(std::shared_ptr<Graph> *executable, Stream *on) {
  for (auto &task : (*executable)->tasks) stream(on).add([graph = *executable, &task] { task(); });
  return SUCCESS;
}

API cudaGraphDestroy(std::shared_ptr<Graph> *graph) {
  delete graph;
  return SUCCESS;
}

API cudaGraphExecDestroy(std::shared_ptr<Graph> *executable) { return cudaGraphDestroy(executable); }

// ---- Kernels ----

API cudaFuncGetAttributes(void *, const void *) { return SUCCESS; }
API cudaFuncSetAttribute(const void *, int, int) { return SUCCESS; }

/** Returns the host stub itself as the driver's handle of the kernel. */
API cudaGetFuncBySymbol(const void **function, const void *stub) { return store(function, stub); }

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
  // The caller may reuse the block of arguments after the launch.
  size_t size = *static_cast<size_t *>(extra[3]);
  auto copy = std::make_shared<std::vector<uint64_t>>((size + 7) / 8);
  memcpy(copy->data(), extra[1], size);
  return stream(config->stream).add([=] { runKernel(functionName(function), copy->data(), size); });
}

struct Dimensions { unsigned x, y, z; };

/** NCCL launches only its kernel for one rank by this function. */
API cudaLaunchKernel(const void *stub, Dimensions, Dimensions, void **arguments, size_t, Stream *on) {
  auto work = std::make_tuple(functionName(stub), *static_cast<char **>(arguments[0]),
      *static_cast<char **>(arguments[1]), *static_cast<size_t *>(arguments[2]), *static_cast<uint64_t *>(arguments[3]),
      *static_cast<bool *>(arguments[4]));
  return stream(on).add([=] { std::apply(reduceOnOneRank, work); });
}

// ---- The driver's other functions ----

API cuDeviceGet(int *device, int ordinal) { return store(device, ordinal); }
API cuDeviceGetAttribute(int *value, int name, int) { return attribute(value, name); }

API cuDeviceGetUuid(char *uuid, int device) {
  memset(uuid, 0, 16);
  uuid[0] = 'c';
  uuid[15] = device;
  return SUCCESS;
}

API cuGetErrorString(int error, const char **text) { return store(text, cudaGetErrorString(error)); }
API cuGetErrorName(int error, const char **text) { return cuGetErrorString(error, text); }

API cuMemGetAddressRange(uintptr_t *base, size_t *size, const void *pointer) {
  auto [begin, memory] = find(pointer);
  if (memory.size == 0) return INVALID_VALUE;
  if (base != nullptr) *base = begin;
  if (size != nullptr) *size = memory.size;
  return SUCCESS;
}

API cuMemGetAllocationGranularity(size_t *bytes, const void *, int) { return store(bytes, 2 << 20); }

// ---- Virtual memory: a handle is the descriptor of a file in memory, which ends with the properties ----

/** CUmemAllocationProp. */
struct Properties {
  int type, handleTypes, locationType, location;
  void *windowsData;
  uint64_t flags;
};

/** Changes the number of references to a handle. The program and each mapping have some; the last one closes it. */
int refer(int handle, int change) {
  static auto &references = *new std::map<int, int>;
  std::lock_guard<std::mutex> guard(memoryLock);
  if (handle < 0 || references[handle] + change < 0) return INVALID_VALUE;
  if ((references[handle] += change) == 0) close(handle);
  return SUCCESS;
}

API cuMemCreate(uint64_t *handle, size_t size, const Properties *properties, unsigned long long) {
  count("cuMemCreate");
  *handle = memfd_create("cuMemCreate", MFD_CLOEXEC);
  bool complete = ftruncate(*handle, size) == 0 && pwrite(*handle, properties, sizeof *properties, size) > 0;
  return complete ? refer(*handle, 1) : OUT_OF_MEMORY;
}

API cuMemGetAllocationPropertiesFromHandle(Properties *properties, uint64_t handle) {
  off_t at = lseek(handle, 0, SEEK_END) - sizeof *properties;
  return pread(handle, properties, sizeof *properties, at) == sizeof *properties ? SUCCESS : INVALID_VALUE;
}

API cuMemRelease(uint64_t handle) { return refer(handle, -1); }

API cuMemAddressReserve(void **address, size_t size, size_t, void *, unsigned long long) {
  *address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *address == MAP_FAILED ? OUT_OF_MEMORY : SUCCESS;
}

API cuMemAddressFree(void *address, size_t size) { return munmap(address, size) == 0 ? SUCCESS : INVALID_VALUE; }

API cuMemMap(void *address, size_t size, size_t offset, uint64_t handle, unsigned long long) {
  constexpr int ON_DEVICE = 1;
  Properties properties;
  if (cuMemGetAllocationPropertiesFromHandle(&properties, handle) != SUCCESS ||
      mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, handle, offset) == MAP_FAILED)
    return INVALID_VALUE;
  add(address, size, properties.locationType != ON_DEVICE, handle);
  return refer(handle, 1);
}

API cuMemUnmap(void *address, size_t size) {
  Memory memory = find(address).second;
  if (memory.size != size || memory.handle < 0) return INVALID_VALUE;
  remove(address);
  mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return refer(memory.handle, -1);
}

API cuMemSetAccess(void *, size_t, const void *, size_t) { return SUCCESS; }

API cuMemExportToShareableHandle(int *file, uint64_t handle, int, unsigned long long) {
  *file = fcntl(handle, F_DUPFD_CLOEXEC, 0);
  return *file < 0 ? INVALID_VALUE : SUCCESS;
}

API cuMemImportFromShareableHandle(uint64_t *handle, void *file, int) {
  *handle = fcntl(number(file), F_DUPFD_CLOEXEC, 0);
  return refer(*handle, 1);
}

API cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
  *handle = find(address).second.handle;
  return refer(*handle, 1);
}

API cuCtxGetCurrent(void **context) { return store(context, &currentDevice); }
API cuCtxGetDevice(int *device) { return cudaGetDevice(device); }

/** Finds the function of the driver in this library. An absent one fails with its name when it is called. */
API cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long, int *status) {
  *function = cudaFunction(name);
  if (status != nullptr) *status = 0;
  return SUCCESS;
}
