/*
 * Events of messages for NCCL's profiler, in the form of NCCL's own Socket network. They cover messages that NCCL's
 * proxy sends and receives through this plugin. Connections that are taken over have no such events, because NCCL
 * creates them only below events of NCCL's proxy.
 *
 * A request with an event is a number with the highest bit set, which Java's requests do not have:
 *
 *   63 62                      12 11            0   (12 bits by default)
 *  +--+--------------------------+---------------+
 *  | 1| number of uses           | place         |
 *  +--+--------------------------+---------------+
 */
#include "net_events.h"

#include <string.h>

#ifndef MILLRACE_EVENT_PLACE_BITS
#define MILLRACE_EVENT_PLACE_BITS 12
#endif
#define PLACE_BITS MILLRACE_EVENT_PLACE_BITS
#define REQUESTS (1 << PLACE_BITS)
#define TAG (1ULL << 63)

static ncclProfilerCallback_t callback;

/* used is set by the thread that posts the message, and cleared by the thread that tests its request. */
static struct place {
  int used;
  uint64_t taken;
  void *request;
  /* Connection of the request; null while the place is free. */
  void *comm;
  /* Null for a message without an event. */
  void *events[MILLRACE_MAX_RECVS];
} requests[REQUESTS];
static unsigned next;

void netEventsUse(ncclProfilerCallback_t function) {
  if (function)
    __atomic_store_n(&callback, function, __ATOMIC_RELEASE);
}

/* Returns the place of a request with an event; null if the request is Java's own, or complete. */
static struct place *place_of(void *request) {
  uint64_t number = (uint64_t)request;
  struct place *place = &requests[number % REQUESTS];
  return number & TAG && place->used && (number & ~TAG) >> PLACE_BITS == place->taken ? place : NULL;
}

/* Takes a free place. Searches only a few places, and returns null if none of them is free. */
static struct place *take(void) {
  for (int tries = 0; tries < 64; tries++) {
    struct place *place = &requests[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % REQUESTS];
    if (!__atomic_exchange_n(&place->used, 1, __ATOMIC_ACQUIRE))
      return place;
  }
  return NULL;
}

static void stop(void **events) {
  for (int i = 0; i < MILLRACE_MAX_RECVS; i++)
    if (events[i])
      callback(&events[i], ncclProfilerNetEventStop, NULL, 0, NULL);
}

static void release(struct place *place) {
  __atomic_store_n(&place->comm, NULL, __ATOMIC_RELAXED);
  __atomic_store_n(&place->used, 0, __ATOMIC_RELEASE);
}

void netEventStart(void *comm, int count, void **parents, int receives, const size_t *bytes, void **request) {
  ncclProfilerCallback_t tell = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
  void *events[MILLRACE_MAX_RECVS] = {NULL};
  int taken = 0;
  if (!tell || !parents || !*request)
    return;
  for (int i = 0; i < count; i++) {
    ncclProfilerNetSockDescr_v1_t message = {ncclProfileSocket, {-1, receives, bytes[i]}};
    if (parents[i])
      tell(&events[i], ncclProfilerNetEventStart, parents[i],
           NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER, &message);
    taken += events[i] != NULL;
  }
  if (!taken)
    return;
  struct place *place = take();
  if (!place) {
    stop(events);
    return;
  }
  place->taken = (place->taken + 1) & ~TAG >> PLACE_BITS;
  place->request = *request;
  memcpy(place->events, events, sizeof events);
  __atomic_store_n(&place->comm, comm, __ATOMIC_RELAXED);
  *request = (void *)(TAG | place->taken << PLACE_BITS | (uint64_t)(place - requests));
}

void *netEventRequest(void *request) {
  struct place *place = place_of(request);
  return place ? place->request : request;
}

void netEventStop(void *request) {
  struct place *place = place_of(request);
  if (!place)
    return;
  stop(place->events);
  release(place);
}

/*
 * Events in flight are not stopped. NCCL's own proxy does not stop their parent events either. If communicators share
 * resources, the profiler context of these events may already have ended.
 */
void netEventsClose(void *comm) {
  if (__atomic_load_n(&callback, __ATOMIC_ACQUIRE))
    for (int i = 0; i < REQUESTS; i++)
      if (__atomic_load_n(&requests[i].comm, __ATOMIC_RELAXED) == comm)
        release(&requests[i]);
}
