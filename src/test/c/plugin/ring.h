/*
 * Ranks in a ring, with one connection per channel from each rank to the next. Each rank is on its own host if the test
 * configures that.
 */
#ifndef MILLRACE_TEST_RING_H
#define MILLRACE_TEST_RING_H

#include "communicator.h"
#include "test_hosts.h"

/* Creates all connections and their memory, over sockets to the two neighbors. */
static inline void connect_ring(struct rank *rank, int next, int previous, int usual) {
  char handles[MAX_CHANNELS][NCCL_NET_HANDLE_MAXSIZE];
  struct buffer_sizes sizes = buffer_sizes(usual);
  int made = 0, all = 2 * rank->channels;
  for (int i = 0; i < all; i++)
    rank->connections[i] = (struct connection){.sends = i % 2, .channel = i / 2};
  rank->bootstrap = previous;
  for (int i = 0; i < all; i += 2) {
    SUCCEEDS(LISTEN(rank->net, rank->ctx, 0, handles[i / 2], &rank->connections[i].listenComm));
    tell(rank, handles[i / 2], NCCL_NET_HANDLE_MAXSIZE);
  }
  rank->bootstrap = next;
  hear(rank, handles, (size_t)rank->channels * NCCL_NET_HANDLE_MAXSIZE);
  while (made < all) {
    made = 0;
    for (int i = 0; i < all; i++)
      made += poll_connection(rank, &rank->connections[i], handles[i / 2]);
    let_others_run();
  }
  for (int i = 0; i < all; i++) {
    allocate_memory(&rank->connections[i], &sizes);
    register_memory(rank, &rank->connections[i]);
    close_listener(rank, &rank->connections[i]);
  }
}

#endif
