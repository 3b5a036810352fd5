/*
 * A network plugin for tests, over TCP on loopback, as strict as plugins for RDMA. A message is sent only when its
 * receive is posted, and only to the receive at the head of the queue, which must have its tag. The plugin checks the
 * promises of callers: memory is registered, the number of requests is limited, and every resource is released. It
 * counts calls, and misbehaves as the variable MILLRACE_TEST_NET or testNetOptions configures. The options are words
 * with commas between them:
 *
 * - late=N: a request is done N tests later than possible
 * - busy=N: every N-th isend and irecv begins nothing
 * - unordered: younger messages overtake older ones on the wire
 * - drip=N: each call moves at most N bytes
 * - short=N: the N-th message is one byte shorter than it was sent
 * - fail=F:N:R: the N-th call of function F returns R, and so do all later calls
 * - block=F:N:MS: the N-th call of function F takes MS milliseconds
 * - cut=N: the N-th message is not sent, and its communicator is broken
 * - deaf: device 0 has no listener
 * - devices=N, recvs=N, limit=BYTES, name=NAME, kernels, nohost, nocuda, dmabuf: values of its properties
 *
 * Compiled with NET_VERSION=8 to 12 it has only the table of that version.
 */
#define _GNU_SOURCE
#include "nccl/plugin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef NET_VERSION
#define NET_VERSION 12
#endif
#define EXPORT __attribute__((visibility("default")))
#define MOST_RECVS 8
#define REQUESTS (NCCL_NET_MAX_REQUESTS * 2)
#define WORDS 512
#define MAGIC 0x54534554

enum function { INIT, DEVICES, PROPERTIES, LISTEN, CONNECT, ACCEPT, REG, DEREG, ISEND, IRECV, IFLUSH, TEST, CLOSE, FUNCTIONS };
static const char *const names[] = {"init", "devices", "getProperties", "listen", "connect", "accept", "regMr",
                                    "deregMr", "isend", "irecv", "iflush", "test", "close"};

/* Counters that tests read, in this order. */
enum count { REGISTERED, OPEN, FAULTS, GROUPS, FLUSHES, COMPLAINTS, MESSAGES, DMA_BUFS, COUNTS };
static long counts[COUNTS];
#define COUNT(what, by) __atomic_add_fetch(&counts[what], by, __ATOMIC_RELAXED)

static pthread_mutex_t optionsLock = PTHREAD_MUTEX_INITIALIZER;
static long late, busy, unordered, drip, shorter, cut, deaf, devices = 1, recvs = 1, limit, kernels, nohost, nocuda, dmabuf;
static char name[64] = "TestNet";
static long calls[FUNCTIONS], failAt[FUNCTIONS], failResult[FUNCTIONS], blockAt[FUNCTIONS], blockMillis[FUNCTIONS];
static long posts;
static ncclDebugLogger_t logger;

#define COMPLAIN(...) (COUNT(COMPLAINTS, 1), logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "TestNet: " __VA_ARGS__))

static int function_of(const char *word) {
  for (int f = 0; f < FUNCTIONS; f++)
    if (!strncmp(word, names[f], strlen(names[f])) && word[strlen(names[f])] == ':')
      return f;
  return 0;
}

/* Replaces all options. */
EXPORT void testNetOptions(const char *options) {
  char copy[512], *rest = copy, *word;
  pthread_mutex_lock(&optionsLock);
  snprintf(copy, sizeof copy, "%s", options);
  late = busy = unordered = drip = shorter = cut = deaf = limit = kernels = nohost = nocuda = dmabuf = posts = 0;
  devices = recvs = 1;
  strcpy(name, "TestNet");
  memset(calls, 0, sizeof calls);
  memset(failAt, 0, sizeof failAt);
  memset(blockAt, 0, sizeof blockAt);
  counts[FAULTS] = counts[GROUPS] = counts[FLUSHES] = counts[COMPLAINTS] = counts[MESSAGES] = counts[DMA_BUFS] = 0;
  while ((word = strsep(&rest, ","))) {
    char *value = strchr(word, '=');
    value = value ? value + 1 : "1";
    long number = atol(value);
#define OPTION(of, variable) if (!strncmp(word, of, sizeof of - 1)) variable = number
    OPTION("late", late);
    OPTION("busy", busy);
    OPTION("unordered", unordered);
    OPTION("drip", drip);
    OPTION("short", shorter);
    OPTION("cut", cut);
    OPTION("deaf", deaf);
    OPTION("devices", devices);
    OPTION("recvs", recvs);
    OPTION("limit", limit);
    OPTION("kernels", kernels);
    OPTION("nohost", nohost);
    OPTION("nocuda", nocuda);
    OPTION("dmabuf", dmabuf);
    if (!strncmp(word, "name=", 5))
      snprintf(name, sizeof name, "%s", value);
    if (!strncmp(word, "fail=", 5)) {
      int f = function_of(value);
      sscanf(strchr(value, ':'), ":%ld:%ld", &failAt[f], &failResult[f]);
    }
    if (!strncmp(word, "block=", 6)) {
      int f = function_of(value);
      sscanf(strchr(value, ':'), ":%ld:%ld", &blockAt[f], &blockMillis[f]);
    }
  }
  pthread_mutex_unlock(&optionsLock);
}

EXPORT const long *testNetCounts(void) {
  return counts;
}

/* Logs a warning at any time, as a thread of the plugin may do. */
EXPORT void testNetWarn(const char *words) {
  logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "TestNet: %s", words);
}

/* Counts a call, and fails or delays it if an option requires that. */
static ncclResult_t enter(enum function f) {
  long call = __atomic_add_fetch(&calls[f], 1, __ATOMIC_RELAXED);
  if (blockAt[f] && call == blockAt[f]) {
    COUNT(FAULTS, 1);
    usleep((useconds_t)(blockMillis[f] * 1000));
  }
  if (failAt[f] && call >= failAt[f]) {
    COUNT(FAULTS, 1);
    logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "TestNet: %s %ld fails, as was ordered", names[f], call);
    return (ncclResult_t)failResult[f];
  }
  return ncclSuccess;
}

#define ENTER(f)                         \
  do {                                   \
    ncclResult_t ordered = enter(f);     \
    if (ordered != ncclSuccess)          \
      return ordered;                    \
  } while (0)

struct memory {
  struct comm *comm;
  char *data;
  size_t size;
  int type;
  int registered;
  /* Address at which this process can access the memory, if it differs: device memory is mapped by its DMA-BUF. */
  char *mapped;
};

static char *touchable(struct memory *memory, void *data) {
  return memory->mapped ? memory->mapped + ((char *)data - memory->data) : data;
}

/*
 * Notice by a receiver that it has posted a receive. A notice with 0 buffers says that a message has arrived, in buffer
 * sizes[0] of the receive tags[0]. Only then is the send complete, as with RDMA: the message of a completed send has
 * arrived, whichever end closes.
 */
struct clear {
  uint32_t buffers;
  uint32_t tags[MOST_RECVS];
  uint32_t sizes[MOST_RECVS];
};

/* Header of a message: the receive to which it belongs. */
struct head {
  uint32_t receive;
  uint32_t buffer;
  uint32_t tag;
  uint32_t size;
};

struct request {
  struct comm *comm;
  int used, sent, done, tests, isFlush;
  /* Fields of a send. */
  struct head head;
  char *data;
  size_t moved;
  uint64_t age;
  /* Fields of a receive. */
  uint32_t receive;
  int buffers, missing;
  char *to[MOST_RECVS], *shadow[MOST_RECVS];
  size_t room[MOST_RECVS];
  int got[MOST_RECVS];
};

struct comm {
  int socket, sends, broken, used;
  struct request requests[REQUESTS];
  /* Fields of a sender: receives that the peer has posted, and the state of their buffers. */
  struct clear clears[REQUESTS];
  uint32_t taken[REQUESTS];
  uint32_t cleared, head;
  size_t clearBytes;
  uint64_t ages;
  struct request *sending;
  /* Fields of a receiver: posted receives, pending notices about them, and the arriving message. */
  uint32_t posted;
  struct clear toSay[WORDS];
  uint32_t toldUntil, said;
  size_t sayBytes;
  struct head arriving;
  size_t headBytes, bodyBytes;
  pthread_mutex_t lock;
};

struct listener {
  int socket, pending;
};

/* Handle of a listener. It begins with the part that NCCL transmits. The rest is the progress of connect. */
struct handle {
  uint32_t magic;
  uint32_t device;
  struct sockaddr_in address;
  struct comm *connecting;
};

static void unblock(int socket) {
  int one = 1;
  fcntl(socket, F_SETFL, O_NONBLOCK);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static ncclResult_t init_net(ncclDebugLogger_t logFunction) {
  static int read;
  logger = logFunction;
  pthread_mutex_lock(&optionsLock);
  int first = !read++;
  pthread_mutex_unlock(&optionsLock);
  if (first && getenv("MILLRACE_TEST_NET"))
    testNetOptions(getenv("MILLRACE_TEST_NET"));
  ENTER(INIT);
  logger(NCCL_LOG_INFO, NCCL_INIT | NCCL_NET, __FILE__, __LINE__, "TestNet: %s with %ld %s", "initialized", devices,
         "devices");
  return ncclSuccess;
}

static ncclResult_t devices_net(int *ndev) {
  ENTER(DEVICES);
  *ndev = (int)devices;
  return ncclSuccess;
}

#define NAME2(a, b) a##b
#define NAME1(a, b) NAME2(a, b)
#define TABLE NAME1(NAME1(ncclNet_v, NET_VERSION), _t)
#if NET_VERSION == 10
#define PROPERTIES_T ncclNetProperties_v9_t
#else
#define PROPERTIES_T NAME1(NAME1(ncclNetProperties_v, NET_VERSION), _t)
#endif

static ncclResult_t get_properties(int dev, PROPERTIES_T *props) {
  ENTER(PROPERTIES);
  static char deviceNames[16][16];
  memset(props, 0, sizeof *props);
  snprintf(deviceNames[dev & 15], 16, "test%d", dev);
  props->name = deviceNames[dev & 15];
  props->ptrSupport = (nohost ? 0 : NCCL_PTR_HOST) | (nocuda ? 0 : NCCL_PTR_CUDA) | (dmabuf ? NCCL_PTR_DMABUF : 0);
  props->speed = 100000;
  props->maxComms = 1 << 16;
  props->maxRecvs = (int)recvs;
  props->netDeviceType = (ncclNetDeviceType)kernels;
#if NET_VERSION >= 9
  props->maxP2pBytes = props->maxCollBytes = limit ? (size_t)limit : MAX_NET_SIZE;
#endif
  return ncclSuccess;
}

static ncclResult_t listen_net(int dev, void *opaque, void **listenComm) {
  ENTER(LISTEN);
  if (deaf && dev == 0) {
    COUNT(FAULTS, 1);
    logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "TestNet: the link of test%d is down", dev);
    return ncclSystemError;
  }
  struct handle *handle = opaque;
  struct listener *listener = calloc(1, sizeof *listener);
  socklen_t length = sizeof handle->address;
  memset(handle, 0, NCCL_NET_HANDLE_MAXSIZE);
  handle->magic = MAGIC;
  handle->device = (uint32_t)dev;
  handle->address.sin_family = AF_INET;
  handle->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener->socket, (struct sockaddr *)&handle->address, length) || listen(listener->socket, 8) ||
      getsockname(listener->socket, (struct sockaddr *)&handle->address, &length))
    return ncclSystemError;
  unblock(listener->socket);
  *listenComm = listener;
  COUNT(OPEN, 1);
  return ncclSuccess;
}

static struct comm *new_comm(int socket, int sends) {
  struct comm *comm = calloc(1, sizeof *comm);
  comm->socket = socket;
  comm->sends = sends;
  pthread_mutex_init(&comm->lock, NULL);
  unblock(socket);
  return comm;
}

static ncclResult_t connect_net(int dev, void *opaque, void **sendComm, ncclNetDeviceHandle_t **deviceHandle) {
  ENTER(CONNECT);
  struct handle *handle = opaque;
  (void)dev;
  *sendComm = NULL;
  if (handle->magic != MAGIC || *deviceHandle) {
    COMPLAIN("a handle of somebody else's, or a device handle that nobody asked for");
    return ncclInvalidArgument;
  }
  if (!handle->connecting) {
    handle->connecting = new_comm(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1);
    return ncclSuccess; /* not connected yet, so the caller must call again with the same handle */
  }
  if (connect(handle->connecting->socket, (struct sockaddr *)&handle->address, sizeof handle->address) &&
      errno != EISCONN)
    return errno == EINPROGRESS || errno == EALREADY ? ncclSuccess : ncclRemoteError;
  /* Counted as open only now, because NCCL cannot close a connection that it abandons earlier. */
  *sendComm = handle->connecting;
  handle->connecting = NULL;
  COUNT(OPEN, 1);
  return ncclSuccess;
}

static ncclResult_t accept_net(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **deviceHandle) {
  ENTER(ACCEPT);
  struct listener *listener = listenComm;
  (void)deviceHandle;
  int accepted = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
  *recvComm = accepted < 0 ? NULL : new_comm(accepted, 0);
  COUNT(OPEN, accepted >= 0);
  return ncclSuccess;
}

static ncclResult_t reg_net(void *opaque, void *data, size_t size, int type, void **mhandle) {
  ENTER(REG);
  struct memory *memory = calloc(1, sizeof *memory);
  *memory = (struct memory){opaque, data, size, type, 1, NULL};
  *mhandle = memory;
  COUNT(REGISTERED, 1);
  return ncclSuccess;
}

static ncclResult_t reg_dma_buf_net(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                    void **mhandle) {
  if (offset || fcntl(fd, F_GETFD) < 0) {
    COMPLAIN("%d is no descriptor that is open, or %lu no offset in it", fd, (unsigned long)offset);
    return ncclInvalidArgument;
  }
  COUNT(DMA_BUFS, 1);
  ncclResult_t result = reg_net(comm, data, size, type, mhandle);
  off_t begin = lseek(fd, 0, SEEK_CUR); /* see stub/cuda.c */
  off_t within = begin > 0 ? begin % sysconf(_SC_PAGESIZE) : 0;
  char *mapped = begin < 0 ? MAP_FAILED
                           : mmap(NULL, size + (size_t)within, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin - within);
  if (result == ncclSuccess && mapped != MAP_FAILED)
    ((struct memory *)*mhandle)->mapped = mapped + within;
  return result;
}

static ncclResult_t dereg_net(void *comm, void *mhandle) {
  ENTER(DEREG);
  struct memory *memory = mhandle;
  if (memory->comm != comm || !memory->registered) {
    COMPLAIN("memory is given back twice, or by another communicator");
    return ncclInvalidArgument;
  }
  memory->registered = 0; /* not freed, so that later use is detected */
  COUNT(REGISTERED, -1);
  return ncclSuccess;
}

static int owns(struct comm *comm, struct memory *memory, char *data, size_t size) {
  if (memory && memory->comm == comm && memory->registered && data >= memory->data &&
      data + size <= memory->data + memory->size)
    return 1;
  COMPLAIN("%zu bytes at %p are not within memory of this communicator", size, data);
  return 0;
}

static struct request *new_request(struct comm *comm) {
  if (comm->used == NCCL_NET_MAX_REQUESTS) {
    COMPLAIN("more than %d requests on one communicator", NCCL_NET_MAX_REQUESTS);
    return NULL;
  }
  struct request *request = comm->requests;
  while (request->used)
    request++;
  memset(request, 0, sizeof *request);
  request->comm = comm;
  request->used = 1;
  request->age = comm->ages++;
  comm->used++;
  return request;
}

static int is_busy(void) {
  if (!busy || __atomic_add_fetch(&posts, 1, __ATOMIC_RELAXED) % busy)
    return 0;
  COUNT(FAULTS, 1);
  return 1;
}

/* Moves as many of the given bytes as possible. Returns -1 if the peer is gone. */
static long move(struct comm *comm, void *data, size_t bytes, int out, long *budget) {
  if (drip && (long)bytes > *budget)
    bytes = (size_t)*budget;
  if (!bytes)
    return 0;
  long moved = out ? send(comm->socket, data, bytes, MSG_NOSIGNAL) : recv(comm->socket, data, bytes, 0);
  if (moved == 0 || (moved < 0 && errno != EAGAIN))
    return comm->broken = 1, -1;
  *budget -= moved > 0 ? moved : 0;
  return moved < 0 ? 0 : moved;
}

/* Returns the message to send next. */
static struct request *next_to_send(struct comm *comm) {
  struct request *next = NULL;
  for (int i = 0; i < REQUESTS; i++) {
    struct request *request = &comm->requests[i];
    if (request->used && !request->sent && !request->isFlush &&
        (!next || (unordered ? request->age > next->age : request->age < next->age)))
      next = request;
  }
  if (next && unordered)
    for (int i = 0; i < REQUESTS; i++)
      if (comm->requests[i].used && !comm->requests[i].sent && comm->requests[i].age < next->age) {
        COUNT(FAULTS, 1);
        break;
      }
  return next;
}

static void progress_sender(struct comm *comm, long *budget) {
  for (;;) {
    struct clear *clear = &comm->clears[comm->cleared % REQUESTS];
    if (comm->cleared - comm->head == REQUESTS)
      break;
    long moved = move(comm, (char *)clear + comm->clearBytes, sizeof *clear - comm->clearBytes, 0, budget);
    if (moved <= 0)
      break;
    comm->clearBytes += (size_t)moved;
    if (comm->clearBytes < sizeof *clear)
      continue;
    comm->clearBytes = 0;
    if (clear->buffers) {
      comm->taken[comm->cleared++ % REQUESTS] = 0;
      continue;
    }
    for (int i = 0; i < REQUESTS; i++) {
      struct request *request = &comm->requests[i];
      if (request->used && request->sent && request->head.receive == clear->tags[0] &&
          request->head.buffer == clear->sizes[0])
        request->done = 1;
    }
  }
  while (!comm->broken) {
    if (!comm->sending && !(comm->sending = next_to_send(comm)))
      break;
    struct request *request = comm->sending;
    size_t head = sizeof request->head;
    long moved = request->moved < head
                     ? move(comm, (char *)&request->head + request->moved, head - request->moved, 1, budget)
                     : move(comm, request->data + (request->moved - head), request->head.size + head - request->moved,
                            1, budget);
    if (moved <= 0 && request->moved < request->head.size + head)
      break;
    request->moved += (size_t)(moved > 0 ? moved : 0);
    if (request->moved == request->head.size + head) {
      request->sent = 1;
      comm->sending = NULL;
    }
  }
}

static struct request *receive_of(struct comm *comm, uint32_t receive) {
  for (int i = 0; i < REQUESTS; i++)
    if (comm->requests[i].used && !comm->requests[i].isFlush && comm->requests[i].receive == receive)
      return &comm->requests[i];
  return NULL;
}

static void say(struct comm *comm, long *budget) {
  while (comm->said != comm->toldUntil) {
    struct clear *clear = &comm->toSay[comm->said % WORDS];
    long moved = move(comm, (char *)clear + comm->sayBytes, sizeof *clear - comm->sayBytes, 1, budget);
    if (moved <= 0)
      break;
    comm->sayBytes += (size_t)moved;
    if (comm->sayBytes == sizeof *clear) {
      comm->said++;
      comm->sayBytes = 0;
    }
  }
}

static void progress_receiver(struct comm *comm, long *budget) {
  say(comm, budget);
  for (;;) {
    size_t head = sizeof comm->arriving;
    if (comm->headBytes < head) {
      long moved = move(comm, (char *)&comm->arriving + comm->headBytes, head - comm->headBytes, 0, budget);
      if (moved <= 0)
        break;
      comm->headBytes += (size_t)moved;
      continue;
    }
    struct request *request = receive_of(comm, comm->arriving.receive);
    uint32_t buffer = comm->arriving.buffer;
    if (!request || comm->arriving.size > request->room[buffer]) {
      COMPLAIN("a message of %u bytes has no receive that it fits", comm->arriving.size);
      comm->broken = 1;
      break;
    }
    if (comm->bodyBytes < comm->arriving.size) {
      char *to = request->shadow[buffer] ? request->shadow[buffer] : request->to[buffer];
      long moved = move(comm, to + comm->bodyBytes, comm->arriving.size - comm->bodyBytes, 0, budget);
      if (moved <= 0)
        break;
      comm->bodyBytes += (size_t)moved;
      continue;
    }
    request->got[buffer] = (int)comm->arriving.size;
    struct clear *have = &comm->toSay[comm->toldUntil++ % WORDS];
    have->buffers = 0;
    have->tags[0] = comm->arriving.receive;
    have->sizes[0] = buffer;
    request->done = --request->missing == 0;
    comm->headBytes = comm->bodyBytes = 0;
  }
  say(comm, budget);
}

static void progress(struct comm *comm) {
  long budget = drip ? drip : 1L << 40;
  if (comm->sends)
    progress_sender(comm, &budget);
  else
    progress_receiver(comm, &budget);
}

static ncclResult_t send_net(void *opaque, void *data, size_t size, int tag, void *mhandle, void **out) {
  ENTER(ISEND);
  struct comm *comm = opaque;
  *out = NULL;
  progress(comm);
  if (comm->broken)
    return ncclRemoteError;
  if (!owns(comm, mhandle, data, size))
    return ncclInvalidArgument;
  if (comm->head == comm->cleared || is_busy())
    return ncclSuccess;
  uint32_t first = comm->head % REQUESTS;
  struct clear *clear = &comm->clears[first];
  for (uint32_t buffer = 0; buffer < clear->buffers; buffer++) {
    if (comm->taken[first] & 1u << buffer || clear->tags[buffer] != (uint32_t)tag)
      continue;
    if (cut && counts[MESSAGES] + 1 >= cut) {
      COUNT(FAULTS, 1);
      shutdown(comm->socket, SHUT_RDWR);
      comm->broken = 1;
      return ncclRemoteError;
    }
    long message = COUNT(MESSAGES, 1);
    struct request *request = new_request(comm);
    if (!request)
      return ncclInternalError;
    request->data = touchable(mhandle, data);
    if (shorter && message == shorter && size > 0) {
      COUNT(FAULTS, 1);
      size--;
    }
    request->head = (struct head){comm->head, buffer, (uint32_t)tag, (uint32_t)size};
    comm->taken[first] |= 1u << buffer;
    if (comm->taken[first] == (1u << clear->buffers) - 1)
      comm->head++;
    *out = request;
    progress(comm);
    return ncclSuccess;
  }
  return ncclSuccess; /* the receive at the head of the queue is for other messages */
}

static ncclResult_t receive_net(void *opaque, int n, void **data, const size_t *sizes, int *tags, void **mhandles,
                                void **out) {
  ENTER(IRECV);
  struct comm *comm = opaque;
  if (*out) {
    COMPLAIN("a hint of NCCL's that nobody gives here");
    return ncclInvalidArgument;
  }
  progress(comm);
  if (comm->broken)
    return ncclRemoteError;
  if (n < 1 || n > recvs) {
    COMPLAIN("%d buffers in a receive, where %ld are allowed", n, recvs);
    return ncclInvalidArgument;
  }
  for (int i = 0; i < n; i++)
    if (!owns(comm, mhandles[i], data[i], sizes[i]))
      return ncclInvalidArgument;
  if (is_busy())
    return ncclSuccess;
  struct request *request = new_request(comm);
  if (!request)
    return ncclInternalError;
  struct clear *clear = &comm->toSay[comm->toldUntil++ % WORDS];
  request->receive = comm->posted++;
  request->buffers = request->missing = n;
  clear->buffers = (uint32_t)n;
  for (int i = 0; i < n; i++) {
    clear->tags[i] = (uint32_t)tags[i];
    clear->sizes[i] = (uint32_t)sizes[i];
    struct memory *memory = mhandles[i];
    request->to[i] = touchable(memory, data[i]);
    request->room[i] = sizes[i];
    if (memory->type == NCCL_PTR_CUDA)
      request->shadow[i] = malloc(sizes[i] + 1);
  }
  if (n > 1)
    COUNT(GROUPS, 1);
  *out = request;
  progress(comm);
  return ncclSuccess;
}

/* Data that was received into device memory, and becomes visible there with the flush. */
struct unseen {
  char *to, *from;
  size_t bytes;
  struct unseen *next;
};
static pthread_mutex_t unseenLock = PTHREAD_MUTEX_INITIALIZER;
static struct unseen *unseen;

static ncclResult_t flush_net(void *opaque, int n, void **data, int *sizes, void **mhandles, void **out) {
  ENTER(IFLUSH);
  struct comm *comm = opaque;
  pthread_mutex_lock(&unseenLock);
  for (int i = 0; i < n; i++) {
    owns(comm, mhandles[i], data[i], (size_t)sizes[i]);
    for (struct unseen **each = &unseen; *each;) {
      struct unseen *here = *each;
      if (here->to != touchable(mhandles[i], data[i])) {
        each = &here->next;
        continue;
      }
      memcpy(here->to, here->from, here->bytes);
      *each = here->next;
      free(here->from);
      free(here);
    }
  }
  pthread_mutex_unlock(&unseenLock);
  COUNT(FLUSHES, 1);
  struct request *request = new_request(comm);
  if (!request)
    return ncclInternalError;
  request->isFlush = request->done = 1;
  *out = request;
  return ncclSuccess;
}

static ncclResult_t test_net(void *opaque, int *done, int *sizes) {
  ENTER(TEST);
  struct request *request = opaque;
  struct comm *comm = request->comm;
  *done = 0;
  if (!request->used) {
    COMPLAIN("a request is tested that is no more");
    return ncclInternalError;
  }
  progress(comm);
  if (!request->done)
    return comm->broken ? ncclRemoteError : ncclSuccess;
  if (late && request->tests++ < late) {
    COUNT(FAULTS, 1);
    return ncclSuccess;
  }
  if (comm->sends)
    sizes[0] = (int)request->head.size;
  for (int i = 0; i < request->buffers; i++) {
    sizes[i] = request->got[i];
    if (request->shadow[i]) {
      struct unseen *later = malloc(sizeof *later);
      pthread_mutex_lock(&unseenLock);
      *later = (struct unseen){request->to[i], request->shadow[i], (size_t)request->got[i], unseen};
      unseen = later;
      pthread_mutex_unlock(&unseenLock);
    }
  }
  *done = 1;
  request->used = 0;
  comm->used--;
  return ncclSuccess;
}

static ncclResult_t close_comm(void *opaque) {
  struct comm *comm = opaque;
  close(comm->socket);
  free(comm);
  COUNT(OPEN, -1);
  return enter(CLOSE);
}

static ncclResult_t close_listener(void *opaque) {
  struct listener *listener = opaque;
  close(listener->socket);
  free(listener);
  COUNT(OPEN, -1);
  return enter(CLOSE);
}

#if NET_VERSION >= 11
static ncclResult_t init_table(void **ctx, uint64_t commId, ncclNetCommConfig_v10_t *config,
                               ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction) {
  (void)commId, (void)profFunction;
  if (config->trafficClass != NCCL_NET_TRAFFIC_CLASS_UNDEF)
    return ncclInvalidArgument;
  ncclResult_t result = init_net(logFunction);
  if (result == ncclSuccess) {
    *ctx = malloc(1);
    COUNT(OPEN, 1);
  }
  return result;
}
static ncclResult_t finalize_table(void *ctx) {
  free(ctx);
  COUNT(OPEN, -1);
  return ncclSuccess;
}
static ncclResult_t listen_table(void *ctx, int dev, void *handle, void **listenComm) {
  return ctx ? listen_net(dev, handle, listenComm) : ncclInvalidArgument;
}
static ncclResult_t connect_table(void *ctx, int dev, void *handle, void **sendComm,
                                  ncclNetDeviceHandle_t **deviceHandle) {
  return ctx ? connect_net(dev, handle, sendComm, deviceHandle) : ncclInvalidArgument;
}
#elif NET_VERSION == 10
static ncclResult_t init_table(ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction) {
  (void)profFunction;
  return init_net(logFunction);
}
#define listen_table listen_net
static ncclResult_t connect_table(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **sendComm,
                                  ncclNetDeviceHandle_t **deviceHandle) {
  return config->trafficClass == NCCL_NET_TRAFFIC_CLASS_UNDEF ? connect_net(dev, handle, sendComm, deviceHandle)
                                                              : ncclInvalidArgument;
}
#else
#define init_table init_net
#define listen_table listen_net
#define connect_table connect_net
#endif

#if NET_VERSION >= 10
static ncclResult_t send_table(void *comm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                               void **request) {
  return phandle ? ncclInvalidArgument : send_net(comm, data, size, tag, mhandle, request);
}
static ncclResult_t receive_table(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                  void **phandles, void **request) {
  return phandles[n - 1] ? ncclInvalidArgument : receive_net(comm, n, data, sizes, tags, mhandles, request);
}
#elif NET_VERSION == 9
#define send_table send_net
static ncclResult_t receive_table(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                  void **request) {
  return receive_net(comm, n, data, sizes, tags, mhandles, request);
}
#else
static ncclResult_t send_table(void *comm, void *data, int size, int tag, void *mhandle, void **request) {
  return send_net(comm, data, (size_t)size, tag, mhandle, request);
}
static ncclResult_t receive_table(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles,
                                  void **request) {
  size_t wide[MOST_RECVS] = {0};
  for (int i = 0; i < n && i < MOST_RECVS; i++)
    wide[i] = (size_t)sizes[i];
  return receive_net(comm, n, data, wide, tags, mhandles, request);
}
#endif

EXPORT const TABLE NAME1(ncclNetPlugin_v, NET_VERSION) = {
    .name = name,
    .init = init_table,
    .devices = devices_net,
    .getProperties = get_properties,
    .listen = listen_table,
    .connect = connect_table,
    .accept = accept_net,
    .regMr = reg_net,
    .regMrDmaBuf = reg_dma_buf_net,
    .deregMr = dereg_net,
#ifndef WITHOUT_ISEND
    .isend = send_table,
#endif
    .irecv = receive_table,
    .iflush = flush_net,
    .test = test_net,
    .closeSend = close_comm,
    .closeRecv = close_comm,
    .closeListen = close_listener,
#if NET_VERSION >= 11
    .finalize = finalize_table,
#endif
};
