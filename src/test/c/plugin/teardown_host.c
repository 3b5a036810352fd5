/*
 * Ends communicators after a takeover of their connections. Usage: LIBRARY WAY CHANNELS.
 * - drain: a rank is destroyed while the peer has not received everything that the rank posted.
 * - abort: a rank is destroyed while its peer is alive but receives nothing.
 * - together: both ranks are destroyed in the middle of their traffic.
 * - runaway: kernels post without credits, as aborted kernels do.
 * - kill: the peer dies by SIGKILL while both ranks send.
 * - reuse: a rank is destroyed in the middle of its traffic while the peer continues to send. The rank then uses its
 * memory for something else.
 *
 * Except for reuse, all memory of a rank is inaccessible from the first deregistration on.
 */
#define _GNU_SOURCE
#include "communicator.h"

#include <signal.h>

#define ENDLESS 1000000000L
#define STEPS_BEFORE 100
#define PATIENCE_MILLISECONDS 100
#define LOOKS_HELD 3000

static const uint64_t seed = 0x7ea5;
static const char *way;

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

static void start_kernels(struct kernel *kernels, int count) {
  for (int i = 0; i < count; i++)
    start_kernel(&kernels[i]);
}

static void join_kernels(struct kernel *kernels, int count) {
  for (int i = 0; i < count; i++)
    pthread_join(kernels[i].thread, NULL);
}

static void timed_tear_down(struct rank *rank) {
  long begin = now_milliseconds();
  tear_down(rank);
  printf("rank %d was torn down in %ld ms\n", rank->number, now_milliseconds() - begin);
}

/* Rank 0 posts until no more steps are sent, and is destroyed. Rank 1 begins to receive when rank 0 asks for it. */
static void drain(struct rank *rank) {
  volatile int stop = 0;
  long posted[MAX_CHANNELS], unsent = 0;
  struct kernel kernels[2 * MAX_CHANNELS];
  int sends = rank->number == 0;
  prepare_kernels(rank, kernels, ENDLESS, seed, &stop);
  if (!sends)
    hear(rank, posted, sizeof posted);
  for (int channel = 0; channel < rank->channels; channel++) {
    struct kernel *kernel = &kernels[2 * channel + sends];
    if (sends)
      kernel->patience = PATIENCE_MILLISECONDS;
    else
      kernel->limit = posted[channel];
    start_kernel(kernel);
  }
  for (int channel = 0; channel < rank->channels; channel++) {
    struct kernel *kernel = &kernels[2 * channel + sends];
    pthread_join(kernel->thread, NULL);
    posted[channel] = kernel->totals.steps;
    unsent += (long)(kernel->on->step - kernel->on->sendMem->head);
  }
  if (sends) {
    printf("%ld steps were not sent yet\n", unsent);
    tell(rank, posted, sizeof posted);
  }
  timed_tear_down(rank);
  print_direction(rank, kernels, sends);
}

static void wait_for_steps(const struct kernel *kernel) {
  while (__atomic_load_n(&kernel->totals.steps, __ATOMIC_RELAXED) < STEPS_BEFORE)
    let_others_run();
}

static void lose_patience(struct kernel *kernels, int count) {
  for (int i = 0; i < count; i++)
    kernels[i].patience = PATIENCE_MILLISECONDS;
}

/* The kernels of rank 1 leave. The kernels of rank 0 wait for them until their patience ends. */
static void abort_one(struct rank *rank) {
  volatile int stop = 0;
  char left = 1;
  struct kernel kernels[2 * MAX_CHANNELS];
  int count = 2 * rank->channels;
  prepare_kernels(rank, kernels, ENDLESS, seed, &stop);
  start_kernels(kernels, count);
  if (rank->number == 1) {
    wait_for_steps(&kernels[0]);
    stop = 1;
    join_kernels(kernels, count);
    tell(rank, &left, 1);
    meet(rank);
    timed_tear_down(rank);
  } else {
    hear(rank, &left, 1);
    lose_patience(kernels, count);
    join_kernels(kernels, count);
    timed_tear_down(rank);
    meet(rank);
  }
}

/* Both ranks abort at a time that rank 1 chooses. Neither waits for the other. */
static void abort_together(struct rank *rank) {
  volatile int stop = 0;
  char now = 1;
  struct kernel kernels[2 * MAX_CHANNELS];
  int count = 2 * rank->channels;
  prepare_kernels(rank, kernels, ENDLESS, seed, &stop);
  start_kernels(kernels, count);
  if (rank->number == 1) {
    wait_for_steps(&kernels[0]);
    tell(rank, &now, 1);
  } else {
    hear(rank, &now, 1);
  }
  stop = 1;
  join_kernels(kernels, count);
  timed_tear_down(rank);
}

/* Rank 1 stops to receive after a while. Rank 0 then posts without credits, and is destroyed. */
static void run_away(struct rank *rank) {
  volatile int stop = 0;
  struct kernel kernels[2 * MAX_CHANNELS];
  int sends = rank->number == 0;
  prepare_kernels(rank, kernels, sends ? ENDLESS : STEPS_BEFORE, seed, &stop);
  for (int channel = 0; channel < rank->channels; channel++) {
    kernels[2 * channel + sends].runsOn = sends;
    start_kernel(&kernels[2 * channel + sends]);
  }
  if (sends) {
    meet(rank);
    lose_patience(kernels, 2 * rank->channels);
  }
  for (int channel = 0; channel < rank->channels; channel++)
    pthread_join(kernels[2 * channel + sends].thread, NULL);
  if (!sends)
    meet(rank);
  else
    free_connections(rank);
  meet(rank);
  /* finalize of rank 0 waits until rank 1 has received or closed. */
  if (sends)
    end_network(rank);
  else
    tear_down(rank);
}

static void kill_one(struct rank *rank) {
  volatile int stop = 0;
  long deadline = now_milliseconds() + STUCK_MILLISECONDS;
  struct kernel kernels[2 * MAX_CHANNELS];
  int count = 2 * rank->channels;
  prepare_kernels(rank, kernels, ENDLESS, seed, &stop);
  start_kernels(kernels, count);
  if (rank->number == 1) {
    wait_for_steps(&kernels[0]);
    raise(SIGKILL);
  }
  while (__atomic_load_n(&warnings, __ATOMIC_RELAXED) < count) {
    REQUIRE(now_milliseconds() < deadline, "%d of %d connections noticed", (int)warnings, count);
    let_others_run();
  }
  stop = 1;
  join_kernels(kernels, count);
  timed_tear_down(rank);
}

/* Memory that the rank uses for other data after the deregistration, with its expected content. */
struct reused {
  char *memory[2], *expected[2];
  size_t bytes[2];
};

/* Stores new content into the memory. It looks like credits, so code that still serves the connection would write. */
static void reuse(struct connection *connection, struct reused *reused) {
  size_t onDevice = connection->deviceMemory ? connection->sizes.bytes[LL128] + connection->sizes.bytes[SIMPLE] : 0;
  *reused = (struct reused){{connection->memory, connection->buffers[LL128]}, {NULL}, {connection->memoryBytes, onDevice}};
  if (!connection->sends)
    __atomic_store_n(&connection->sendMem->head, connection->step + STEPS_BEFORE, __ATOMIC_RELEASE);
  for (int part = 0; part < 2; part++) {
    reused->expected[part] = malloc(reused->bytes[part] + 1);
    memcpy(reused->expected[part], reused->memory[part], reused->bytes[part]);
  }
}

static void require_unwritten(const struct connection *connection, const struct reused *reused) {
  for (int part = 0; part < 2; part++)
    for (size_t at = 0; at < reused->bytes[part]; at++)
      REQUIRE(reused->memory[part][at] == reused->expected[part][at],
              "channel %d %s: byte %zu of the %s's memory was written after deregMr had returned", connection->channel,
              connection->sends ? "sends" : "receives", at, part ? "device" : "host");
}

/* Rank 1 chooses the time at which rank 0 reuses its memory, and sends until rank 0 receives no more. */
static void reuse_memory(struct rank *rank) {
  volatile int stop = 0;
  char now = 1;
  long unsent = 0;
  struct kernel kernels[2 * MAX_CHANNELS];
  struct reused reused[2 * MAX_CHANNELS];
  int count = 2 * rank->channels;
  prepare_kernels(rank, kernels, ENDLESS, seed, &stop);
  start_kernels(kernels, count);
  if (rank->number == 1) {
    wait_for_steps(&kernels[0]);
    tell(rank, &now, 1);
    hear(rank, &now, 1);
    lose_patience(kernels, count);
    join_kernels(kernels, count);
    for (int i = 1; i < count; i += 2)
      unsent += (long)(kernels[i].on->step - kernels[i].on->sendMem->head);
    printf("%ld steps were not sent yet\n", unsent);
    meet(rank);
    tear_down(rank);
    return;
  }
  hear(rank, &now, 1);
  if (host_slots_on_device())
    hold_copies(LOOKS_HELD); /* delays the copies that have begun */
  stop = 1;
  join_kernels(kernels, count);
  for (int i = 0; i < count; i++) {
    struct connection *connection = &rank->connections[i];
    SUCCEEDS(rank->net->deregMr(connection->comm, connection->mhandles[0]));
    reuse(connection, &reused[i]);
  }
  if (host_slots_on_device())
    make_all_copies();
  tell(rank, &now, 1);
  meet(rank);
  for (int i = 0; i < count; i++)
    require_unwritten(&rank->connections[i], &reused[i]);
  for (int i = 0; i < count; i++) {
    struct connection *connection = &rank->connections[i];
    for (int p = 1; p < PROTOCOLS; p++)
      SUCCEEDS(rank->net->deregMr(connection->comm, connection->mhandles[p]));
    SUCCEEDS(connection->sends ? rank->net->closeSend(connection->comm) : rank->net->closeRecv(connection->comm));
  }
  finalize(rank);
  for (int i = 0; i < count; i++)
    require_unwritten(&rank->connections[i], &reused[i]);
  if (host_slots_on_device())
    print_copies(rank->number);
}

static void run(struct rank *rank) {
  /* In most ways a network must fill up. Full slots fill it sooner. */
  struct buffer_sizes sizes = buffer_sizes(!is("together") && !is("kill"));
  set_up(rank, &sizes);
  if (is("drain"))
    drain(rank);
  else if (is("abort"))
    abort_one(rank);
  else if (is("together"))
    abort_together(rank);
  else if (is("runaway"))
    run_away(rank);
  else if (is("reuse"))
    reuse_memory(rank);
  else
    kill_one(rank);
}

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY drain|abort|together|runaway|kill|reuse CHANNELS");
  way = arguments[2];
  int status = two_processes(arguments[1], atoi(arguments[3]), run);
  if (is("kill"))
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "rank 1 was not killed: %d", status);
  else
    REQUIRE(status == 0, "rank 1 failed");
  printf("OK " TABLE_NAME "\n");
  return 0;
}
