/*
 * Runs two ranks over every operation of one version of the table. Usage: LIBRARY MESSAGES SEED WAY.
 * - threads: both ranks are in one process. Each has the threads that NCCL would have. It runs twice with a dlclose
 * between the runs.
 * - abort: the same, after several runs that both ranks abandon halfway with requests in flight.
 * - processes: each rank has its own process.
 * - refused: connect and accept must fail.
 */
#define _GNU_SOURCE
#include "message_events.h"
#include "unpack_kernel.h"
#include "versions.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFERS 3
#define SLOTS 8
#define MAX_MESSAGE (1 << 20)
#define ABORTED 6

/* Buffer sizes of a connection, in NCCL's order and without gaps: LL, LL128, SIMPLE. */
static const size_t bufferBytes[BUFFERS] = {524288, 4915200, SLOTS * MAX_MESSAGE};

struct end {
  const net_t *net;
  void *ctx;
  void *comm;
  char *memory;
  char *simple;
  void *mhandles[BUFFERS];
  ncclNetDeviceHandle_t *deviceHandle;
};

static struct end ends[2];
static long messages, leaveAt;
static uint64_t seed;
static char peerHandle[NCCL_NET_HANDLE_MAXSIZE];

static size_t message_bytes(uint64_t *random) {
  switch (next_random(random) % 4) {
  case 0:
    return 0;
  case 1:
    return next_random(random) % 64;
  case 2:
    return next_random(random) % 65536;
  default:
    return next_random(random) % (MAX_MESSAGE + 1);
  }
}

static char pattern(long message, size_t at) {
  return (char)(message * 31 + (long)at * 7 + (long)(at >> 8));
}

static void register_buffers(struct end *end) {
  size_t total = 0;
  for (int p = 0; p < BUFFERS; p++)
    total += bufferBytes[p];
  end->memory = aligned_alloc(4096, total + 8192);
  REQUIRE(end->memory, "out of memory");
  size_t offset = 0;
  for (int p = 0; p < BUFFERS; p++) {
    SUCCEEDS(end->net->regMr(end->comm, end->memory + offset, bufferBytes[p], NCCL_PTR_HOST, &end->mhandles[p]));
    REQUIRE(end->mhandles[p], "a null memory handle");
    end->simple = end->memory + offset;
    offset += bufferBytes[p];
  }
}

/* Follows NCCL's order: the memory is freed before the connection is closed. */
static void deregister_buffers(struct end *end) {
  for (int p = 0; p < BUFFERS; p++)
    SUCCEEDS(end->net->deregMr(end->comm, end->mhandles[p]));
  free(end->memory);
}

/* Returns whether an operation failed with the error that an absent peer must cause. Other failures end the program. */
static int lost(ncclResult_t result) {
  if (leaveAt < messages && result == ncclRemoteError)
    return 1;
  SUCCEEDS(result);
  return 0;
}

/*
 * Connects, or accepts from a listener. With ON_STACK the host behaves as RCCL with AINIC cards: it passes the address
 * of a structure of four bytes on the stack in place of the address of a device handle. ON_STACK has the values of
 * these four bytes and of the four bytes behind them, which are a canary. With IN_HEAP they are in the heap.
 */
static ncclResult_t connect_end(struct end *end, void *listenComm) {
  ncclNetDeviceHandle_t **address = &end->deviceHandle;
#ifdef ON_STACK
  volatile uint64_t bytes = ON_STACK;
  address = (ncclNetDeviceHandle_t **)&bytes;
#elif defined IN_HEAP
  end->deviceHandle = (ncclNetDeviceHandle_t *)IN_HEAP;
#endif
  ncclResult_t result = listenComm ? end->net->accept(listenComm, &end->comm, address)
                                   : CONNECT(end->net, end->ctx, 0, peerHandle, &end->comm, address);
#ifdef ON_STACK
  REQUIRE(bytes == ON_STACK, "the plugin overwrote the canary: %lx", bytes);
#elif defined IN_HEAP
  REQUIRE(end->deviceHandle == (ncclNetDeviceHandle_t *)IN_HEAP, "the plugin overwrote the canary");
#endif
  return result;
}

static void *sender(void *argument) {
  struct end *end = argument;
  while (!end->comm)
    SUCCEEDS(connect_end(end, NULL));
  REQUIRE(!end->deviceHandle, "the plugin stored a device handle: %p", (void *)end->deviceHandle);
  register_buffers(end);
  uint64_t random = seed;
  void *requests[SLOTS] = {NULL};
  struct step steps[SLOTS];
  size_t bytes[SLOTS];
  long begun = 0, posted = 0, done = 0;
  count_told(proxyTallies, PROXY_OPERATION, 1);
  while (done < leaveAt) {
    if (posted < messages && posted < done + SLOTS) {
      int slot = (int)(posted % SLOTS);
      char *data = end->simple + (size_t)slot * MAX_MESSAGE;
      uint64_t before = random;
      bytes[slot] = message_bytes(&random);
      for (size_t i = 0; i < bytes[slot]; i++)
        data[i] = pattern(posted, i);
      if (begun == posted)
        begin_step(&steps[begun++ % SLOTS]);
      offer_step(&steps[slot]);
      if (lost(ISEND(end->net, end->comm, data, bytes[slot], end->mhandles[2], &requests[slot])))
        break;
      check_step(&steps[slot], requests[slot] != NULL);
      if (requests[slot])
        posted++;
      else
        random = before;
    }
    int finished = 0, size = -1, slot = (int)(done % SLOTS);
    if (done < posted) {
      if (lost(end->net->test(requests[slot], &finished, &size)))
        break;
      if (finished) {
        REQUIRE((size_t)size == bytes[slot], "%d of %zu bytes sent", size, bytes[slot]);
        end_step(&steps[slot]);
        done++;
      }
    }
    if (!finished)
      let_others_run();
  }
  if (done == messages)
    count_ended(proxyTallies, PROXY_OPERATION);
  deregister_buffers(end);
  SUCCEEDS(end->net->closeSend(end->comm));
  return NULL;
}

/* Gathers a received message as a kernel does, if kernels unpack. NCCL's proxy would advance tail at this point. */
static void unpack_message(struct end *end, char *slot, size_t bytes) {
  if (!host_unpacks()) {
    REQUIRE(!end->deviceHandle, "the plugin stored a device handle: %p", (void *)end->deviceHandle);
    return;
  }
  REQUIRE(end->deviceHandle && end->deviceHandle->netDeviceType == NCCL_NET_DEVICE_UNPACK, "no handle to unpack");
  REQUIRE(end->deviceHandle->needsProxyProgress, "nobody makes progress");
  unpackNetDeviceHandle *handle = end->deviceHandle->handle;
  handle->head++;
  if (bytes)
    unpack(handle, handle->head, slot, bytes);
}

static void *receiver(void *argument) {
  struct end *end = argument;
  void *requests[SLOTS] = {NULL};
  struct step steps[SLOTS];
  uint64_t random = seed;
  long begun = 0, posted = 0, done = 0;
  register_buffers(end);
  count_told(proxyTallies, PROXY_OPERATION, 1);
  while (done < leaveAt) {
    if (posted < messages && posted < done + SLOTS) {
      int slot = (int)(posted % SLOTS);
      requests[slot] = (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION;
      if (begun == posted)
        begin_step(&steps[begun++ % SLOTS]);
      offer_step(&steps[slot]);
      ncclResult_t result = net_irecv(end->net, end->comm, end->simple + (size_t)slot * MAX_MESSAGE, MAX_MESSAGE,
                                      end->mhandles[2], &requests[slot]);
      if (lost(result))
        break;
      check_step(&steps[slot], requests[slot] != NULL);
      posted += requests[slot] != NULL;
    }
    int finished = 0, size = -1, slot = (int)(done % SLOTS);
    if (done < posted) {
      ncclResult_t result = end->net->test(requests[slot], &finished, &size);
      if (lost(result))
        break;
      if (finished) {
        size_t expected = message_bytes(&random);
        char *data = end->simple + (size_t)slot * MAX_MESSAGE;
        unpack_message(end, data, expected);
        REQUIRE((size_t)size == expected, "message %ld: %d bytes, not %zu (seed %lu)", done, size, expected, seed);
        for (size_t i = 0; i < expected; i++)
          REQUIRE(data[i] == pattern(done, i), "message %ld, byte %zu (seed %lu)", done, i, seed);
        end_step(&steps[slot]);
        done++;
      }
    }
    if (!finished)
      let_others_run();
  }
  if (done == messages)
    count_ended(proxyTallies, PROXY_OPERATION);
  deregister_buffers(end);
  SUCCEEDS(end->net->closeRecv(end->comm));
  return NULL;
}

static void check_properties(const net_t *net) {
  int devices = 0;
  properties_t properties;
  SUCCEEDS(net->devices(&devices));
  REQUIRE(devices == 1, "%d devices", devices);
  memset(&properties, 0x5a, sizeof properties);
  SUCCEEDS(net->getProperties(0, &properties));
  REQUIRE(properties.name[0] && !properties.pciPath, "name or path");
  REQUIRE(properties.ptrSupport == NCCL_PTR_HOST && properties.regIsGlobal == 0, "memory");
  REQUIRE(properties.speed > 0 && properties.port == 0 && properties.latency == 0 && properties.guid == 0, "link");
  REQUIRE(properties.maxComms > 0 && properties.maxRecvs == 1, "limits");
  REQUIRE(properties.netDeviceType == (host_unpacks() ? NCCL_NET_DEVICE_UNPACK : NCCL_NET_DEVICE_HOST), "device type");
  REQUIRE(properties.netDeviceVersion == (host_unpacks() ? 7 : 0), "device version");
#if NET_VERSION >= 9
  REQUIRE(properties.forceFlush == 0 && properties.vProps.ndevs == 1 && properties.vProps.devs[0] == 0,
      "virtual device");
  REQUIRE(properties.maxP2pBytes == MAX_NET_SIZE && properties.maxCollBytes == MAX_NET_SIZE, "sizes");
#endif
#if NET_VERSION >= 11
  REQUIRE(properties.maxMultiRequestSize == 1, "multi-requests");
#endif
#if NET_VERSION >= 12
  REQUIRE(properties.railId == -1 && properties.planeId == -1, "rails");
#endif
  REQUIRE(net->getProperties(1, &properties) != ncclSuccess, "device 1 does not exist");
}

/* The plugin must not trust handles that NCCL passes: a closed handle is an error, and so is an invented one. */
static void check_stale(const net_t *net, void *comm, void *mhandle) {
  void *request = NULL;
  int done;
  REQUIRE(net->closeSend(comm) == ncclInvalidArgument, "closed twice");
  REQUIRE(net->deregMr(comm, mhandle) == ncclInvalidArgument, "memory of a closed connection");
  REQUIRE(ISEND(net, comm, NULL, 0, NULL, &request) == ncclInvalidArgument, "sent on a closed connection");
  REQUIRE(net->test((void *)0x7fffffffffffUL, &done, NULL) == ncclInvalidArgument, "invented request");
  REQUIRE(net->closeListen(NULL) == ncclInvalidArgument, "null listener");
}

static void finalize(struct end *end) {
#if NET_VERSION >= 11
  SUCCEEDS(end->net->finalize(end->ctx));
#else
  (void)end;
#endif
}

static void one_communicator(const char *path) {
  void *library = open_plugin(path);
  const net_t *net = symbol(library, TABLE_NAME);
  ends[0] = ends[1] = (struct end){.net = net};
  void *listenComm = NULL;
  SUCCEEDS(net_init(net, &ends[0].ctx));
  SUCCEEDS(net_init(net, &ends[1].ctx));
  check_properties(net);
  SUCCEEDS(LISTEN(net, ends[1].ctx, 0, peerHandle, &listenComm));
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, sender, &ends[0]);
  while (!ends[1].comm)
    SUCCEEDS(connect_end(&ends[1], listenComm));
  SUCCEEDS(net->closeListen(listenComm));
  pthread_create(&threads[1], NULL, receiver, &ends[1]);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  check_stale(net, ends[0].comm, ends[0].mhandles[0]);
  finalize(&ends[0]);
  finalize(&ends[1]);
#if NET_VERSION >= 11
  REQUIRE(net->finalize(ends[1].ctx) == ncclInvalidArgument, "finalized twice");
#endif
  REQUIRE(dlclose(library) == 0, "%s", dlerror());
}

static void refused_connection(const char *path) {
  struct end *end = &ends[0];
  void *listenComm = NULL;
  end->net = symbol(open_plugin(path), TABLE_NAME);
  SUCCEEDS(net_init(end->net, &end->ctx));
  SUCCEEDS(LISTEN(end->net, end->ctx, 0, peerHandle, &listenComm));
  REQUIRE(connect_end(end, NULL) != ncclSuccess, "connected");
  REQUIRE(connect_end(end, listenComm) != ncclSuccess, "accepted");
  SUCCEEDS(end->net->closeListen(listenComm));
  finalize(end);
}

static void sending_process(const char *path, int handlePipe) {
  struct end *end = &ends[0];
  end->net = symbol(open_plugin(path), TABLE_NAME);
  SUCCEEDS(net_init(end->net, &end->ctx));
  REQUIRE(read(handlePipe, peerHandle, sizeof peerHandle) == sizeof peerHandle, "no handle");
  sender(end);
  finalize(end);
}

static void receiving_process(const char *path, int handlePipe) {
  struct end *end = &ends[1];
  void *listenComm = NULL;
  end->net = symbol(open_plugin(path), TABLE_NAME);
  SUCCEEDS(net_init(end->net, &end->ctx));
  SUCCEEDS(LISTEN(end->net, end->ctx, 0, peerHandle, &listenComm));
  REQUIRE(write(handlePipe, peerHandle, sizeof peerHandle) == sizeof peerHandle, "no handle");
  while (!end->comm)
    SUCCEEDS(connect_end(end, listenComm));
  SUCCEEDS(end->net->closeListen(listenComm));
  receiver(end);
  finalize(end);
}

static void two_processes(const char *path) {
  int handlePipe[2], status;
  REQUIRE(pipe(handlePipe) == 0, "pipe");
  pid_t child = fork();
  if (child == 0) {
    sending_process(path, handlePipe[0]);
    exit(0);
  }
  receiving_process(path, handlePipe[1]);
  REQUIRE(waitpid(child, &status, 0) == child, "wait");
  REQUIRE(status == 0, "the sender ended with %d", status);
}

int main(int count, char **arguments) {
  REQUIRE(count == 5, "usage: LIBRARY MESSAGES SEED threads|abort|processes|refused");
  messages = leaveAt = atol(arguments[2]);
  seed = strtoull(arguments[3], NULL, 0);
#if NET_VERSION >= 10
  profiler = message_event;
#endif
  if (strcmp(arguments[4], "threads") == 0) {
    one_communicator(arguments[1]);
    /* After the last communicator NCCL has forgotten the plugin's name and requests its default. */
    one_communicator("libnccl-net.so");
#if NET_VERSION >= 10
    check_events("all", 2 * messages);
  } else if (strcmp(arguments[4], "abort") == 0) {
    leaveAt = messages / 2;
    for (int i = 0; i < ABORTED; i++)
      one_communicator(arguments[1]);
    print_tallies("aborted", proxyTallies);
    REQUIRE(proxyTallies[MESSAGE].ended < proxyTallies[MESSAGE].taken, "nothing was under way");
    memset(proxyTallies, 0, sizeof proxyTallies);
    leaveAt = messages;
    one_communicator(arguments[1]);
    check_events("all", messages);
#endif
  } else if (strcmp(arguments[4], "refused") == 0) {
    refused_connection(arguments[1]);
  } else {
    two_processes(arguments[1]);
  }
  printf("OK " TABLE_NAME "\n");
  return 0;
}
