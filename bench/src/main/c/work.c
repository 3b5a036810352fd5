/*
 * Work items through a FIFO. The host copies an item and advances 'produced'. The device copies it out and acknowledges
 * it. WorkLoops.java has the same loops.
 */
#include "bench.h"

enum { RING_BYTES, ITEM_BYTES, COUNTERS, ACKNOWLEDGED, ITEM };
enum { PRODUCED = 0, CONSUMED = 128 };

static inline unsigned load_counter(const char *word) { return __atomic_load_n((const unsigned *)word, __ATOMIC_ACQUIRE); }
static inline void store_counter(char *word, unsigned value) { __atomic_store_n((unsigned *)word, value, __ATOMIC_RELEASE); }

static int await_counter(const char *word, unsigned value) {
    for (long i = 0; i < PATIENCE; i++) {
        if ((int)(load_counter(word) - value) >= 0) {
            return 1;
        }
        spin_wait();
    }
    return 0;
}

EXPORT long work_put(char *memory, long *a, long count) {
    char *counters = memory + a[COUNTERS];
    unsigned produced = load_counter(counters + PRODUCED);
    const long *item = (const long *)a[ITEM];
    for (long i = 0; i < count; i++) {
        for (long at = 0; at < a[ITEM_BYTES]; at += 16) {
            long *to = (long *)(memory + ((produced + at) & (a[RING_BYTES] - 1)));
            to[0] = item[at / 8];
            to[1] = item[at / 8 + 1];
        }
        produced += a[ITEM_BYTES];
        store_counter(counters + PRODUCED, produced); /* pairs with the acquire in work_take */
        if (!await_counter(memory + a[ACKNOWLEDGED], produced)) {
            return LOST;
        }
        store_counter(counters + CONSUMED, produced);
    }
    return count;
}

EXPORT long work_take(char *memory, long *a, long count) {
    char *counters = memory + a[COUNTERS];
    unsigned taken = load_counter(memory + a[ACKNOWLEDGED]);
    long *item = (long *)a[ITEM];
    for (long i = 0; i < count; i++) {
        if (!await_counter(counters + PRODUCED, taken + a[ITEM_BYTES])) {
            return LOST;
        }
        for (long at = 0; at < a[ITEM_BYTES]; at += 8) {
            item[at / 8] = *(long *)(memory + ((taken + at) & (a[RING_BYTES] - 1)));
        }
        taken += a[ITEM_BYTES];
        store_counter(memory + a[ACKNOWLEDGED], taken);
    }
    return count;
}
