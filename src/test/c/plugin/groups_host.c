/*
 * Receives several buffers with tags, over one version of the table. Usage: LIBRARY TAGS MESSAGES SEED WAY. One process
 * sends messages of every tag. Messages of one tag keep their order, and tags are mixed at random. Another process
 * receives them in groups.
 * - run: until all messages have arrived.
 * - kill: the sender dies by SIGKILL halfway.
 */
#define _GNU_SOURCE
#include "versions.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TAGS 8
/* Number of messages per tag that are in flight at once. */
#define AHEAD 8
#define ROOM 20000
#define GROUPS 8

static int tags, messages, kills;
static uint64_t seed;
static char memory[MAX_TAGS * AHEAD * ROOM];

/* NCCL's tags are ranks, so any numbers are possible. */
static int tag_of(int index) {
  return 1000 - 37 * index;
}

static size_t length_of(int tag, int message) {
  uint64_t state = seed ^ (uint64_t)(tag * 100003 + message + 1) * 0x9e3779b97f4a7c15ULL;
  uint64_t drawn = next_random(&state);
  return drawn % 4 == 0 ? 0 : (drawn >> 8) % (drawn % 4 == 1 ? 64 : ROOM + 1);
}

static char byte_of(int tag, int message, size_t at) {
  return (char)(tag * 59 + message * 31 + (int)at * 7);
}

static char *place(int tag, int message) {
  return memory + (size_t)(tag * AHEAD + message % AHEAD) * ROOM;
}

static void send_all(const net_t *net, void *comm, void *mhandle) {
  int posted[MAX_TAGS] = {0}, done[MAX_TAGS] = {0}, sent = 0;
  void *requests[MAX_TAGS][AHEAD] = {{NULL}};
  uint64_t random = seed;
  while (sent < tags * messages) {
    /* Sends several messages of one tag in a row, up to the permitted number in flight. */
    int tag = (int)(next_random(&random) % (uint64_t)tags);
    for (int burst = (int)(next_random(&random) % AHEAD) + 1; burst > 0; burst--) {
      if (posted[tag] == messages || posted[tag] == done[tag] + AHEAD)
        break;
      size_t length = length_of(tag, posted[tag]);
      char *data = place(tag, posted[tag]);
      for (size_t i = 0; i < length; i++)
        data[i] = byte_of(tag, posted[tag], i);
      void *request = NULL;
      SUCCEEDS(net->isend(comm, data, (size_argument)length, tag_of(tag), mhandle, PARENT &request));
      if (!request)
        break;
      requests[tag][posted[tag]++ % AHEAD] = request;
    }
    for (int t = 0; t < tags; t++) {
      int finished = 0, size = -1;
      if (done[t] == posted[t])
        continue;
      SUCCEEDS(net->test(requests[t][done[t] % AHEAD], &finished, &size));
      if (finished) {
        REQUIRE((size_t)size == length_of(t, done[t]), "%d bytes sent of tag %d", size, t);
        done[t]++;
        sent++;
      }
    }
    if (kills && sent > tags * messages / 2)
      raise(SIGKILL);
    sched_yield();
  }
}

struct group {
  int count, tag[MAX_TAGS], message[MAX_TAGS];
  void *request;
};

/*
 * Draws tags for a group among those with messages left. Each tag occurs at most as often as its messages may be in
 * flight. Returns the number of buffers.
 */
static int draw_group(struct group *group, int *posted, const int *received, uint64_t *random) {
  group->count = 0;
  uint64_t which = next_random(random);
  if (which >> 16 & 1)
    which |= (1 << MAX_TAGS) - 1;
  for (int i = 0; i < tags; i++) {
    int tag = (int)(((which >> 32) + (uint64_t)i) % (uint64_t)tags);
    if (which >> tag & 1 && posted[tag] < messages && posted[tag] < received[tag] + AHEAD) {
      group->tag[group->count] = tag;
      group->message[group->count++] = posted[tag];
    }
  }
  return group->count;
}

static int lost(ncclResult_t result) {
  if (kills && result == ncclRemoteError)
    return 1;
  SUCCEEDS(result);
  return 0;
}

static void receive_all(const net_t *net, void *comm, void *mhandle) {
  struct group groups[GROUPS];
  int posted[MAX_TAGS] = {0}, received[MAX_TAGS] = {0}, total = 0, largest = 0;
  long begun = 0, ended = 0;
  uint64_t random = seed ^ 0x1234567;
  while (total < tags * messages) {
    struct group *next = &groups[begun % GROUPS];
    if (begun - ended < GROUPS && draw_group(next, posted, received, &random)) {
      void *data[MAX_TAGS], *mhandles[MAX_TAGS];
      size_argument sizes[MAX_TAGS];
      int names[MAX_TAGS];
      for (int i = 0; i < next->count; i++) {
        data[i] = place(next->tag[i], next->message[i]);
        mhandles[i] = mhandle;
        /* The buffer is often larger than the message. */
        sizes[i] = (size_argument)(i % 2 ? ROOM : length_of(next->tag[i], next->message[i]));
        names[i] = tag_of(next->tag[i]);
      }
#if NET_VERSION >= 10
      void *parents[MAX_TAGS];
      for (int i = 0; i < MAX_TAGS; i++)
        parents[i] = parent;
#define GROUP_PARENTS parents,
#else
#define GROUP_PARENTS
#endif
      next->request = NULL;
      if (lost(net->irecv(comm, next->count, data, sizes, names, mhandles, GROUP_PARENTS &next->request)))
        break;
      if (next->request) {
        for (int i = 0; i < next->count; i++)
          posted[next->tag[i]]++;
        largest = next->count > largest ? next->count : largest;
        begun++;
      }
    }
    if (ended == begun)
      continue;
    struct group *oldest = &groups[ended % GROUPS];
    int finished = 0, lengths[MAX_TAGS];
    memset(lengths, -1, sizeof lengths);
    if (lost(net->test(oldest->request, &finished, lengths)))
      break;
    if (!finished) {
      let_others_run();
      continue;
    }
    for (int i = 0; i < oldest->count; i++) {
      int tag = oldest->tag[i], message = oldest->message[i];
      REQUIRE((size_t)lengths[i] == length_of(tag, message), "tag %d, message %d: %d bytes", tag, message, lengths[i]);
      for (size_t at = 0; at < (size_t)lengths[i]; at++)
        REQUIRE(place(tag, message)[at] == byte_of(tag, message, at), "tag %d, message %d, byte %zu", tag, message, at);
      received[tag]++;
      total++;
    }
    ended++;
  }
  REQUIRE(kills ? total < tags * messages : largest == tags, "%d messages came, %d at once", total, largest);
}

static void check_limits(const net_t *net, void *comm, void *mhandle) {
  properties_t properties;
  void *data[9], *mhandles[9], *request = NULL;
  size_argument sizes[9] = {0};
  int names[9] = {0};
#if NET_VERSION >= 10
  void *parents[9] = {NULL};
#endif
  SUCCEEDS(net->getProperties(0, &properties));
  REQUIRE(properties.maxRecvs == 8, "%d buffers of a receive", properties.maxRecvs);
  for (int i = 0; i < 9; i++) {
    data[i] = memory;
    mhandles[i] = mhandle;
  }
  REQUIRE(net->irecv(comm, 9, data, sizes, names, mhandles, GROUP_PARENTS &request) == ncclInvalidArgument, "nine");
  REQUIRE(net->irecv(comm, 0, data, sizes, names, mhandles, GROUP_PARENTS &request) == ncclInvalidArgument, "none");
}

int main(int count, char **arguments) {
  int handlePipe[2], status;
  void *ctx, *comm = NULL, *mhandle = NULL;
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  static ncclNetDeviceHandle_t *deviceHandle;
  REQUIRE(count == 6, "usage: LIBRARY TAGS MESSAGES SEED run|kill");
  tags = atoi(arguments[2]);
  messages = atoi(arguments[3]);
  seed = strtoull(arguments[4], NULL, 0);
  kills = strcmp(arguments[5], "kill") == 0;
  REQUIRE(pipe(handlePipe) == 0, "pipe");
  pid_t child = fork();
  const net_t *net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  SUCCEEDS(net_init(net, &ctx));
  if (child == 0) {
    REQUIRE(read(handlePipe[0], handle, sizeof handle) == sizeof handle, "no handle");
    while (!comm) {
      SUCCEEDS(CONNECT(net, ctx, 0, handle, &comm, &deviceHandle));
      let_others_run();
    }
    SUCCEEDS(net->regMr(comm, memory, sizeof memory, NCCL_PTR_HOST, &mhandle));
    send_all(net, comm, mhandle);
    SUCCEEDS(net->deregMr(comm, mhandle));
    SUCCEEDS(net->closeSend(comm));
    exit(0);
  }
  void *listenComm = NULL;
  SUCCEEDS(LISTEN(net, ctx, 0, handle, &listenComm));
  REQUIRE(write(handlePipe[1], handle, sizeof handle) == sizeof handle, "no handle");
  while (!comm) {
    SUCCEEDS(net->accept(listenComm, &comm, &deviceHandle));
    let_others_run();
  }
  SUCCEEDS(net->closeListen(listenComm));
  SUCCEEDS(net->regMr(comm, memory, sizeof memory, NCCL_PTR_HOST, &mhandle));
  receive_all(net, comm, mhandle);
  check_limits(net, comm, mhandle);
  SUCCEEDS(net->deregMr(comm, mhandle));
  SUCCEEDS(net->closeRecv(comm));
  REQUIRE(waitpid(child, &status, 0) == child, "wait");
  REQUIRE(kills ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0, "the sender ended with %d", status);
  printf("OK " TABLE_NAME "\n");
  return 0;
}
