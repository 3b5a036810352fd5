/*
 * One access, or one pair of accesses of a protocol, repeatedly. LineAccess.java has the same loops. Each loop uses
 * the eight words of a line one after the other, so that the compiler cannot move a plain access out of the loop. Data
 * lies DATA bytes after the flags.
 */
#include "bench.h"

enum { DATA = 256 };

#define LOOP(name, body)                                             \
    EXPORT long access_##name(char *line, long *unused, long count) { \
        (void)unused;                                                \
        long sum = 0;                                                \
        for (long i = 0; i < count; i++) {                           \
            long *word = (long *)(line + ((i & 7) << 3));            \
            long *data = (long *)(line + DATA + ((i & 7) << 3));     \
            (void)data;                                              \
            body;                                                    \
        }                                                            \
        return sum + *(long *)line;                                  \
    }

#define LOAD(order) sum += __atomic_load_n(word, order)
#define STORE(order) __atomic_store_n(word, i, order)
#define FENCE(order) STORE(__ATOMIC_RELAXED); __atomic_thread_fence(order)

LOOP(get_plain, sum += *word)
LOOP(get_opaque, LOAD(__ATOMIC_RELAXED))
LOOP(get_acquire, LOAD(__ATOMIC_ACQUIRE))
LOOP(get_volatile, LOAD(__ATOMIC_SEQ_CST))
LOOP(set_plain, *word = i)
LOOP(set_opaque, STORE(__ATOMIC_RELAXED))
LOOP(set_release, STORE(__ATOMIC_RELEASE))
LOOP(set_volatile, STORE(__ATOMIC_SEQ_CST))
LOOP(get_and_add, sum += __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST))
LOOP(compare_and_set, { long seen = *word; sum += __atomic_compare_exchange_n(word, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); })
LOOP(failed_compare_and_set, { long seen = -1; sum += __atomic_compare_exchange_n(word, &seen, i, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); })
LOOP(load_load_fence, FENCE(__ATOMIC_ACQUIRE))
LOOP(acquire_fence, FENCE(__ATOMIC_ACQUIRE))
LOOP(store_store_fence, FENCE(__ATOMIC_RELEASE))
LOOP(release_fence, FENCE(__ATOMIC_RELEASE))
LOOP(full_fence, FENCE(__ATOMIC_SEQ_CST))
LOOP(data_release, { *data = i; STORE(__ATOMIC_RELEASE); })
LOOP(data_store_fence, { *data = i; __atomic_thread_fence(__ATOMIC_RELEASE); STORE(__ATOMIC_RELAXED); })
LOOP(data_full_fence, { *data = i; __atomic_thread_fence(__ATOMIC_SEQ_CST); STORE(__ATOMIC_RELAXED); })
LOOP(data_volatile, { *data = i; STORE(__ATOMIC_SEQ_CST); })
LOOP(store_fence_load, { FENCE(__ATOMIC_SEQ_CST); sum += __atomic_load_n(data, __ATOMIC_ACQUIRE); })
LOOP(store_fence_opaque_load, { FENCE(__ATOMIC_SEQ_CST); sum += __atomic_load_n(data, __ATOMIC_RELAXED); })
LOOP(volatile_store_load, { STORE(__ATOMIC_SEQ_CST); sum += __atomic_load_n(data, __ATOMIC_SEQ_CST); })
LOOP(data_release_poll, { *data = i; STORE(__ATOMIC_RELEASE); sum += __atomic_load_n(data + 8, __ATOMIC_ACQUIRE); })
LOOP(data_full_fence_poll, { *data = i; __atomic_thread_fence(__ATOMIC_SEQ_CST); STORE(__ATOMIC_RELAXED); sum += __atomic_load_n(data + 8, __ATOMIC_ACQUIRE); })
LOOP(data_volatile_poll, { *data = i; STORE(__ATOMIC_SEQ_CST); sum += __atomic_load_n(data + 8, __ATOMIC_ACQUIRE); })

/* The descriptors' accesses in C: to one word, and to the sizes of connFifo's eight entries. */
#define ENTRY ((long *)(line + (i & 7) * 24))
LOOP(head_release, __atomic_store_n((long *)line, i, __ATOMIC_RELEASE))
LOOP(tail_acquire, sum += __atomic_load_n((long *)line, __ATOMIC_ACQUIRE))
LOOP(size_acquire, sum += __atomic_load_n(ENTRY, __ATOMIC_ACQUIRE))
LOOP(size_plain, *ENTRY = i)

/* The other thread, for an access under contention: reads or writes a word until it is told to stop. */
EXPORT long contend_reading(char *word, long *stop, long count) {
    (void)count;
    long sum = 0;
    while (!load_acquire(stop)) {
        for (int i = 0; i < 64; i++) {
            sum += load_acquire(word);
        }
    }
    return sum;
}

EXPORT long contend_writing(char *word, long *stop, long count) {
    (void)count;
    long value = 0;
    while (!load_acquire(stop)) {
        for (int i = 0; i < 64; i++) {
            store_release(word, value++);
        }
    }
    return value;
}
