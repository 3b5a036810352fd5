/*
 * NCCL with a profiler that accepts some events of the proxy and declines others. NCCL reports the operation and each
 * step to it. The network reports each message, below its step.
 */
#ifndef MILLRACE_TEST_MESSAGE_EVENTS_H
#define MILLRACE_TEST_MESSAGE_EVENTS_H

#include "event_tally.h"
#include "versions.h"

/* Parent that the network receives. */
struct step {
  int taken;
  /* Whether the event of the step's message was refused by the profiler, and whether it is open. */
  int refused, open;
};

static struct tally proxyTallies[KINDS];

static inline void begin_step(struct step *step) {
  *step = (struct step){.taken = tally_of(proxyTallies, PROXY_STEP) % 5 != 0};
  count_told(proxyTallies, PROXY_STEP, step->taken);
}

static inline void end_step(struct step *step) {
  REQUIRE(!step->open, "a message's event has not ended with its step");
  if (step->taken)
    count_ended(proxyTallies, PROXY_STEP);
}

#if NET_VERSION >= 10
/* Must be called before a message of the step is passed to the network. */
static inline void offer_step(struct step *step) {
  parent = step;
}

/* Must be called after the network has accepted the message (posted), or had no room for it. */
static inline void check_step(const struct step *step, int posted) {
  REQUIRE(step->open == (posted && !step->refused), "the event of a message that was %s",
          posted ? "posted is not open" : "not posted is open");
}

/* Callback that NCCL passes to init. */
static inline ncclResult_t message_event(void **event, int type, void *parentHandle, int64_t id, void *data) {
  if (type == ncclProfilerNetEventStart) {
    const ncclProfilerNetSockDescr_v1_t *message = data;
    struct step *step = parentHandle;
    REQUIRE(step && id == (NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER), "event");
    REQUIRE(message->type == ncclProfileSocket && message->sock.op >= 0 && message->sock.op <= 1, "descriptor");
    REQUIRE(!step->open, "a second event of one message");
    step->refused = tally_of(proxyTallies, MESSAGE) % 7 == 0;
    step->open = !step->refused;
    count_told(proxyTallies, MESSAGE, step->open);
    if (step->open)
      *event = step;
  } else {
    struct step *step = *event;
    REQUIRE(type == ncclProfilerNetEventStop && step && step->open, "an event is stopped that is not open");
    step->open = 0;
    count_ended(proxyTallies, MESSAGE);
  }
  return ncclSuccess;
}

/* Checks the events after count messages were sent and received. */
static inline void check_events(const char *who, long count) {
  const struct tally *messages = &proxyTallies[MESSAGE], *steps = &proxyTallies[PROXY_STEP];
  print_tallies(who, proxyTallies);
  REQUIRE(messages->told == 2 * count && steps->told == 2 * count, "%ld events of %ld messages", messages->told, count);
  REQUIRE(messages->taken < messages->told && messages->ended == messages->taken, "messages");
  REQUIRE(steps->ended == steps->taken, "steps");
  REQUIRE(proxyTallies[PROXY_OPERATION].ended == proxyTallies[PROXY_OPERATION].taken, "operations");
}
#else
static inline void offer_step(struct step *step) {
  (void)step;
}

static inline void check_step(const struct step *step, int posted) {
  (void)step, (void)posted;
}
#endif

#endif
