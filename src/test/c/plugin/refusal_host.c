/*
 * Checks connections that cannot be taken over, and calls that a connection refuses after a takeover. Usage: LIBRARY
 * WAY.
 * - gap: there is memory between the buffers.
 * - sentinel: a slot's size is not empty before the first operation.
 * - started: a counter has already moved.
 * - mode: a slot lies in a buffer that all peers share.
 * - as it is: none of these, but the layout is not the layout of the version.
 * - fourth: buffers of the user are registered too. The plugin declines them.
 * - proxy: NCCL's proxy sends, receives and requests progress.
 * - services: the two ranks use different services (see be_rank_1).
 */
#define _GNU_SOURCE
#include "communicator.h"

static const char *way;

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

/* Changes the connection as a different libnccl would have set it up. */
static void spoil(struct connection *connection) {
  if (is("gap"))
    connection->buffers[SIMPLE] += 4096;
  if (is("sentinel"))
    connection->recvMem->connFifo[3].size = 0;
  if (is("started"))
    connection->sendMem->head = 8;
  if (is("mode"))
    connection->recvMem->connFifo[5].mode = NCCL_MODE_OFFSET;
}

/*
 * Registers memory that the plugin refuses. NCCL then abandons the connection: it deregisters and closes nothing except
 * the communicator.
 */
static void refuse_memory(struct rank *rank, struct connection *connection) {
  spoil(connection);
  for (int p = 0; p < PROTOCOLS; p++) {
    ncclResult_t result = rank->net->regMr(connection->comm, connection->buffers[p], connection->sizes.bytes[p],
                                           NCCL_PTR_HOST, &connection->mhandles[p]);
    REQUIRE((result == ncclSuccess) == (p < SIMPLE), "buffer %d: result %d", p, result);
  }
}

/* Registers a buffer of the user after the connection's three. NCCL's sendProxyRegBuffer continues without a handle. */
static void refuse_fourth(struct rank *rank, struct connection *connection) {
  void *mhandle = NULL;
  register_memory(rank, connection);
  for (int i = 0; i < 4; i++)
    REQUIRE(rank->net->regMr(connection->comm, connection->memory, 4096 + i, NCCL_PTR_HOST, &mhandle) ==
                    ncclInvalidUsage &&
                mhandle == NULL,
            "buffer %d of the user's", i);
}

static void refuse_operations(struct rank *rank, struct connection *connection) {
  void *request = NULL, *data = connection->buffers[SIMPLE];
  register_memory(rank, connection);
  ncclResult_t result =
      connection->sends
          ? ISEND(rank->net, connection->comm, data, 64, connection->mhandles[SIMPLE], &request)
          : net_irecv(rank->net, connection->comm, data, 64, connection->mhandles[SIMPLE], &request);
  REQUIRE(result != ncclSuccess, "it was sent or received");
}

static void run(struct rank *rank) {
  struct buffer_sizes sizes = buffer_sizes(0);
  connect_peer(rank);
  for (int i = 0; i < 2 * rank->channels; i++) {
    struct connection *connection = &rank->connections[i];
    allocate_memory(connection, &sizes);
    if (is("fourth"))
      refuse_fourth(rank, connection);
    else if (is("proxy"))
      refuse_operations(rank, connection);
    else
      refuse_memory(rank, connection);
    close_listener(rank, connection);
  }
  meet(rank);
  if (is("fourth") || is("proxy"))
    tear_down(rank);
  else
    finalize(rank);
}

/* Each rank listens, and connects to the peer's listener. Both attempts must fail. */
static void meet_another_service(struct rank *rank) {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  void *listenComm = NULL, *comm = NULL;
  static ncclNetDeviceHandle_t *deviceHandle;
  SUCCEEDS(LISTEN(rank->net, rank->ctx, 0, handle, &listenComm));
  tell(rank, handle, sizeof handle);
  hear(rank, handle, sizeof handle);
  REQUIRE(CONNECT(rank->net, rank->ctx, 0, handle, &comm, &deviceHandle) != ncclSuccess, "connected");
  SUCCEEDS(rank->net->closeListen(listenComm));
  finalize(rank);
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY WAY");
  way = arguments[2];
  if (is("services"))
    REQUIRE(two_processes(arguments[1], 1, meet_another_service) == 0, "rank 1 failed");
  else
    two_threads(arguments[1], 1, run);
  printf("OK " TABLE_NAME "\n");
  return 0;
}
