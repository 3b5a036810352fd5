/*
 * A thread that waits for occasional steps, and records the delay until each was seen. IdleLoop.java and
 * BackoffIdleStrategy.java have the same loop.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "bench.h"

enum { SPINS, YIELDS, MIN_PARK, MAX_PARK, SAMPLES };
enum { TAIL = 0, TIMES = 4096, TIMES_LENGTH = 1024 };

EXPORT long idle_wait(char *memory, long *a, long count) {
    long *samples = (long *)a[SAMPLES];
    long passes = 0, park = a[MIN_PARK], step = 0;
    while (step < count) {
        long tail = load_acquire(memory + TAIL);
        if (tail != step) {
            for (; step != tail; step++) {
                samples[step] = nanos() - ((long *)(memory + TIMES))[step & (TIMES_LENGTH - 1)];
            }
            passes = 0;
            park = a[MIN_PARK];
        } else if (passes < a[SPINS]) {
            passes++;
            spin_wait();
        } else if (passes < a[SPINS] + a[YIELDS]) {
            passes++;
            sched_yield();
        } else {
            struct timespec pause = {0, park};
            nanosleep(&pause, NULL);
            park = park * 2 < a[MAX_PARK] ? park * 2 : a[MAX_PARK];
        }
    }
    return step;
}
