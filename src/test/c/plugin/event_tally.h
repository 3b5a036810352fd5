/*
 * Counts events per kind: the number that the profiler was offered, the number that it accepted, and the number that
 * ended.
 */
#ifndef MILLRACE_TEST_EVENT_TALLY_H
#define MILLRACE_TEST_EVENT_TALLY_H

#include "host.h"

enum kind {
  GROUP_API, COLLECTIVE_API, TRANSFER_API, GROUP, COLLECTIVE, TRANSFER, PROXY_OPERATION, PROXY_STEP, MESSAGE, BLOCK, KINDS
};

static const char *const kindNames[KINDS] = {
    "group call",      "collective call", "send or receive call", "group",   "collective",
    "send or receive", "proxy operation", "proxy step",           "message", "block of a kernel"};

struct tally {
  long told, taken, ended;
};

static inline long tally_of(const struct tally *tallies, enum kind kind) {
  return __atomic_load_n(&tallies[kind].told, __ATOMIC_RELAXED);
}

static inline void count_told(struct tally *tallies, enum kind kind, int taken) {
  __atomic_add_fetch(&tallies[kind].told, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&tallies[kind].taken, taken, __ATOMIC_RELAXED);
}

static inline void count_ended(struct tally *tallies, enum kind kind) {
  __atomic_add_fetch(&tallies[kind].ended, 1, __ATOMIC_RELAXED);
}

/* Prints one line for each kind with events, in the format that the test reads. */
static inline void print_tallies(const char *who, const struct tally *tallies) {
  for (int kind = 0; kind < KINDS; kind++)
    if (tallies[kind].told)
      printf("EVENTS %-12s %-20s told %6ld taken %6ld ended %6ld\n", who, kindNames[kind], tallies[kind].told,
             tallies[kind].taken, tallies[kind].ended);
  fflush(stdout);
}

#endif
