/*
 * Connections between two ranks, created and closed in NCCL's order. Each channel has one connection in each direction.
 */
#ifndef MILLRACE_TEST_CONNECTION_H
#define MILLRACE_TEST_CONNECTION_H

#include "device_slots.h"
#include "operations.h"
#include "unpack_kernel.h"
#include "versions.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CHANNELS 8

#ifdef RCCL
typedef rcclSendMem send_mem;
typedef rcclRecvMem recv_mem;
#elif FIFO_VERSION == 28
typedef ncclSendMem send_mem;
typedef ncclRecvMem_v28 recv_mem;
#else
typedef ncclSendMem send_mem;
typedef ncclRecvMem recv_mem;
#endif

/* Fields of sendNetResources and recvNetResources before the buffers' addresses (transport/net.cc, 2.19 to 2.30). */
struct resources {
  union {
    struct {
      char padding[16];
      void *sendMem, *recvMem;
      int tpRank, tpLocalRank, tpRemoteRank, netDev, useGdr, useDmaBuf, maxRecvs;
      uint64_t *gdcSync;
    } send;
    struct {
      void *sendMem, *recvMem;
      int tpRank, tpLocalRank, tpRemoteRank, tpRemoteProxyRank, netDev, useGdr, useDmaBuf, needFlush, maxRecvs;
      uint64_t *gdcSync, *gdcFlush;
    } receive;
  };
  void *gdrDesc;
  int shared, channelId, connIndex;
};

struct connection {
  int sends;
  int channel;
  void *listenComm;
  void *comm;
  /* Set by the plugin. Like this host, NCCL's proxy has the pointer in the heap. */
  ncclNetDeviceHandle_t *deviceHandle;
  /* LL, LL128, SIMPLE, ncclSendMem and ncclRecvMem without gaps, or the parts of them that are in host memory. */
  char *memory;
  size_t memoryBytes;
  /* LL128 and SIMPLE if these buffers are in device memory. */
  char *deviceMemory;
  /* Addresses that kernels use and that are registered. */
  char *buffers[PROTOCOLS];
  struct resources resources;
  char *registered[PROTOCOLS];
  int registeredBytes[PROTOCOLS];
  void *mhandles[PROTOCOLS];
  struct buffer_sizes sizes;
  send_mem *sendMem;
  recv_mem *recvMem;
  /* Step counter of the device. It continues from operation to operation. */
  uint64_t step;
  /*
   * Source from which the device gathers received data, with its counter of slices. Null if the device does not gather.
   */
  unpackNetDeviceHandle *unpack;
  uint64_t unpackHead;
};

struct rank {
  int number;
  const net_t *net;
  void *ctx;
  /* Socket to the peer that replaces NCCL's bootstrap. */
  int bootstrap;
  int channels;
  /* Channel by channel, first the receiving connection and then the sending one. */
  struct connection connections[2 * MAX_CHANNELS];
};

static inline void tell(struct rank *rank, const void *what, size_t bytes) {
  REQUIRE(write(rank->bootstrap, what, bytes) == (ssize_t)bytes, "the peer is gone");
}

static inline void hear(struct rank *rank, void *what, size_t bytes) {
  REQUIRE(recv(rank->bootstrap, what, bytes, MSG_WAITALL) == (ssize_t)bytes, "the peer is gone");
}

/* Returns when the peer has reached this point too. */
static inline void meet(struct rank *rank) {
  char byte = 0;
  tell(rank, &byte, 1);
  hear(rank, &byte, 1);
}

/*
 * Allocates the buffers that are not in device memory. If NCCL prepared device memory, LL's buffer of the receiving end
 * is in host memory, after all other parts.
 */
static inline void allocate_host_memory(struct connection *connection, const struct buffer_sizes *sizes) {
  int onDevice = host_slots_on_device(), apart = !connection->sends && (onDevice || host_slots_are("apart"));
  size_t offsets[PROTOCOLS], offset = 0;
  for (int p = 0; p < PROTOCOLS; p++) {
    offsets[p] = offset;
    offset += onDevice && (p != LL || apart) ? 0 : sizes->bytes[p];
  }
  connection->memoryBytes = offset + sizeof(send_mem) + sizeof(recv_mem) + (apart ? sizes->bytes[LL] : 0);
  connection->memory =
      mmap(NULL, connection->memoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(connection->memory != MAP_FAILED, "out of memory");
  connection->sendMem = (send_mem *)(connection->memory + offset);
  connection->recvMem = (recv_mem *)(connection->sendMem + 1);
  for (int p = 0; p < PROTOCOLS; p++)
    connection->buffers[p] = connection->memory + offsets[p];
  if (apart)
    connection->buffers[LL] = (char *)(connection->recvMem + 1);
}

/* Allocates memory and fills it as NCCL does before it registers it. */
static inline void allocate_memory(struct connection *connection, const struct buffer_sizes *sizes) {
  connection->sizes = *sizes;
  allocate_host_memory(connection, sizes);
  memcpy(connection->registered, connection->buffers, sizeof connection->buffers);
  connection->deviceMemory = NULL;
  if (host_slots_on_device()) {
    char *memory;
    connection->deviceMemory = allocate_on_device(sizes->bytes[LL128] + sizes->bytes[SIMPLE], &memory);
    connection->registered[LL128] = connection->deviceMemory;
    connection->registered[SIMPLE] = connection->deviceMemory + sizes->bytes[LL128];
    connection->buffers[LL128] = memory;
    connection->buffers[SIMPLE] = memory + sizes->bytes[LL128];
  }
  for (int slot = 0; slot < NCCL_STEPS; slot++)
    connection->recvMem->connFifo[slot].size = -1;
  connection->step = 0;
}

static inline void fill_resources(struct rank *rank, struct connection *connection) {
  struct resources *resources = &connection->resources;
  resources->channelId = connection->channel;
  if (connection->sends) {
    resources->send.sendMem = connection->sendMem;
    resources->send.recvMem = connection->recvMem;
    resources->send.tpRank = rank->number;
    resources->send.tpRemoteRank = 1 - rank->number;
  } else {
    resources->receive.sendMem = connection->sendMem;
    resources->receive.recvMem = connection->recvMem;
    resources->receive.tpRank = rank->number;
    resources->receive.tpRemoteRank = 1 - rank->number;
  }
}

static inline void register_memory(struct rank *rank, struct connection *connection) {
  fill_resources(rank, connection);
  for (int p = 0; p < PROTOCOLS; p++) {
    int type = connection->deviceMemory && p != LL ? NCCL_PTR_CUDA : NCCL_PTR_HOST;
    SUCCEEDS(rank->net->regMr(connection->comm, connection->registered[p], connection->sizes.bytes[p], type,
                              &connection->mhandles[p]));
    REQUIRE(connection->mhandles[p], "a null memory handle");
  }
}

/* NCCL copies the device handle once the connection exists. The handle can state that its proxy has no work. */
static inline void check_device_handle(struct connection *connection) {
  const ncclNetDeviceHandle_t *handle = connection->deviceHandle;
  REQUIRE(handle, "no device handle: the connection is not taken over");
  REQUIRE(handle->needsProxyProgress == 0, "NCCL's proxy is asked for progress");
  if (!connection->sends && host_unpacks()) {
    REQUIRE(handle->netDeviceType == NCCL_NET_DEVICE_UNPACK && handle->netDeviceVersion == 7, "device type %d",
            handle->netDeviceType);
    connection->unpack = handle->handle;
    connection->unpackHead = connection->unpack->head;
    REQUIRE(connection->unpackHead == UINT64_MAX, "head begins at %lu", connection->unpackHead);
    return;
  }
  REQUIRE(handle->netDeviceType == NCCL_NET_DEVICE_HOST, "device type %d", handle->netDeviceType);
}

/* Polls an incomplete connection once. Returns whether the connection is complete. */
static inline int poll_connection(struct rank *rank, struct connection *connection, char *peerHandle) {
  if (connection->comm)
    return 1;
  connection->deviceHandle = NULL;
  if (connection->sends)
    SUCCEEDS(CONNECT(rank->net, rank->ctx, 0, peerHandle, &connection->comm, &connection->deviceHandle));
  else
    SUCCEEDS(rank->net->accept(connection->listenComm, &connection->comm, &connection->deviceHandle));
  if (connection->comm)
    check_device_handle(connection);
  return connection->comm != NULL;
}

/* Creates all connections without their memory. */
static inline void connect_peer(struct rank *rank) {
  char handles[MAX_CHANNELS][NCCL_NET_HANDLE_MAXSIZE];
  int made = 0, all = 2 * rank->channels;
  for (int i = 0; i < all; i++) {
    struct connection *connection = &rank->connections[i];
    *connection = (struct connection){.sends = i % 2, .channel = i / 2};
    if (connection->sends)
      continue;
    SUCCEEDS(LISTEN(rank->net, rank->ctx, 0, handles[connection->channel], &connection->listenComm));
    tell(rank, handles[connection->channel], NCCL_NET_HANDLE_MAXSIZE);
  }
  hear(rank, handles, (size_t)rank->channels * NCCL_NET_HANDLE_MAXSIZE);
  while (made < all) {
    made = 0;
    for (int i = 0; i < all; i++)
      made += poll_connection(rank, &rank->connections[i], handles[i / 2]);
    let_others_run();
  }
}

static inline void close_listener(struct rank *rank, struct connection *connection) {
  if (connection->listenComm)
    SUCCEEDS(rank->net->closeListen(connection->listenComm));
  connection->listenComm = NULL;
}

static inline void set_up(struct rank *rank, const struct buffer_sizes *sizes) {
  connect_peer(rank);
  for (int i = 0; i < 2 * rank->channels; i++) {
    allocate_memory(&rank->connections[i], sizes);
    register_memory(rank, &rank->connections[i]);
    close_listener(rank, &rank->connections[i]);
  }
}

/*
 * NCCL frees the memory after it has deregistered it. From then on no thread may access it. This function enforces the
 * rule from the first deregistration on: a thread that accesses the memory ends the process.
 */
static inline void free_connection(struct rank *rank, struct connection *connection) {
  for (int p = 0; p < PROTOCOLS; p++) {
    SUCCEEDS(rank->net->deregMr(connection->comm, connection->mhandles[p]));
    if (p == 0 && connection->deviceMemory)
      free_on_device(connection->deviceMemory);
    if (p == 0)
      REQUIRE(mprotect(connection->memory, connection->memoryBytes, PROT_NONE) == 0, "mprotect");
  }
  SUCCEEDS(connection->sends ? rank->net->closeSend(connection->comm) : rank->net->closeRecv(connection->comm));
}

static inline void finalize(struct rank *rank) {
#if NET_VERSION >= 11
  SUCCEEDS(rank->net->finalize(rank->ctx));
#else
  (void)rank;
#endif
}

static inline void free_connections(struct rank *rank) {
  for (int i = 0; i < 2 * rank->channels; i++)
    free_connection(rank, &rank->connections[i]);
}

/* Finalizes, and then releases the addresses, so that no other mapping can use them before. */
static inline void end_network(struct rank *rank) {
  finalize(rank);
  for (int i = 0; i < 2 * rank->channels; i++)
    munmap(rank->connections[i].memory, rank->connections[i].memoryBytes);
}

/* Destroys the communicator. */
static inline void tear_down(struct rank *rank) {
  free_connections(rank);
  end_network(rank);
}

#endif
