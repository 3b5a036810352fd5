/*
 * Plants one kind of fault until MILLRACE_CHECK=report has reported it. Rank 0 sends one piece per operation to rank 1,
 * on the last channel. Usage: LIBRARY slot|frame|destination.
 * - slot: the sending kernel changes the slot until its credit returns.
 * - frame: the network has a fault, which the environment configures.
 * - destination: the receiving kernel changes the slot before it returns the credit.
 */
#define _GNU_SOURCE
#include "communicator.h"

#define CHANNELS 3
#define COMMUNICATOR 0x1234 /* value that net_init passes */
#define BYTES 512

static const char *fault, *path;
static volatile int never;

static int is(const char *name) {
  return strcmp(fault, name) == 0;
}

static void launch(const ncclProfiler_v6_t *profiler, void *context, int rank) {
  ncclProfilerEventDescr_v6_t event = {.type = ncclProfileColl, .rank = rank};
  void *handle = NULL;
  event.event.coll = (ncclProfilerColl_v5_t){.func = "Broadcast", .count = BYTES, .datatype = "ncclInt8",
                                             .nChannels = CHANNELS, .algo = "RING", .proto = "SIMPLE"};
  SUCCEEDS(profiler->startEvent(context, &handle, &event));
  if (handle)
    SUCCEEDS(profiler->stopEvent(handle));
}

static int move_piece(struct kernel *kernel) {
  struct connection *on = kernel->on;
  struct piece piece = {SIMPLE, 1, BYTES, on->step + 1};
  volatile char *slot = slot_of(kernel, &piece);
  uint64_t end = on->step + 1;
  if (on->sends) {
    if (!send_piece(kernel, &piece))
      return 0;
    WAIT_UNTIL(kernel, "the credit",
               (*slot ^= is("slot"), __atomic_load_n(&on->sendMem->head, __ATOMIC_ACQUIRE) == end));
  } else {
    WAIT_UNTIL(kernel, "tail", __atomic_load_n(&on->recvMem->tail, __ATOMIC_ACQUIRE) == end);
    *slot ^= is("destination");
    on->step = end;
    return_credits(kernel);
  }
  return 1;
}

/* Exchanges whether a rank has warned. Returns whether the rank that must find the fault has. */
static int is_found(struct rank *rank) {
  int both[RANKS];
  both[rank->number] = warnings > 0;
  tell(rank, &both[rank->number], sizeof(int));
  hear(rank, &both[1 - rank->number], sizeof(int));
  return both[is("slot") ? 0 : 1];
}

static void traffic(struct rank *rank) {
  const ncclProfiler_v6_t *profiler = symbol(open_plugin(path), "ncclProfiler_v6");
  struct buffer_sizes sizes = buffer_sizes(0);
  struct kernel kernel = {.on = &rank->connections[2 * (CHANNELS - 1) + (rank->number == 0)], .rank = rank->number,
                          .jitter = 1, .stop = &never};
  void *context = NULL;
  int mask;
  SUCCEEDS(profiler->init(&context, COMMUNICATOR, &mask, "", 1, RANKS, rank->number, logger));
  set_up(rank, &sizes);
  do {
    launch(profiler, context, rank->number);
    meet(rank);
    REQUIRE(move_piece(&kernel), "no piece");
  } while (!is_found(rank));
  tear_down(rank);
  SUCCEEDS(profiler->finalize(context));
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY slot|frame|destination");
  path = arguments[1];
  fault = arguments[2];
  REQUIRE(two_processes(path, CHANNELS, traffic) == 0, "rank 1 failed");
  return 0;
}
