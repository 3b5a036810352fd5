/*
 * Common code of the comparators: the C loops with which Java's loops are compared. Every loop has the same parameters
 * (memory, arguments, number of iterations), so that one downcall serves all. The result keeps the compiler from
 * removing the work. It is negative if the other side did not answer.
 */
#ifndef MILLRACE_BENCH_H
#define MILLRACE_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define LOST (-1L)

/* Number of polls of a flag after which the other side is considered dead. This takes some seconds. */
#define PATIENCE 2000000000L

static inline long load_acquire(const void *word) { return __atomic_load_n((const long *)word, __ATOMIC_ACQUIRE); }
static inline void store_release(void *word, long value) { __atomic_store_n((long *)word, value, __ATOMIC_RELEASE); }

/* Equivalent of Thread.onSpinWait: signals a spin loop to the core. */
static inline void spin_wait(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static inline long nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

#endif
