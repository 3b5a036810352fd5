/*
 * A step through connFifo, tail and head, as device and proxy make it. RingLoop.java has the same loops. The arguments
 * contain the offsets, from the layouts that Java uses.
 */
#include <string.h>

#include "bench.h"

enum { HEAD, TAIL, SIZE_0, ENTRY_BYTES, SIMPLE, LL, LL128, SLOT_BYTES, LL_SLOT_BYTES, LL128_SLOT_BYTES, PAYLOAD_BYTES, WINDOW, PAYLOAD, SAMPLES };
enum { SLOTS = 8, LL128_LINE = 128, LL128_DATA = 120 };
#define EMPTY (-1L)

static long *size_of(char *memory, const long *a, long step) { return (long *)(memory + a[SIZE_0] + (step & (SLOTS - 1)) * a[ENTRY_BYTES]); }

/* Waits until a counter reaches a value. Returns 0 if it does not in time. */
static int await(const char *counter, long value) {
    for (long i = 0; i < PATIENCE; i++) {
        if (load_acquire(counter) - value >= 0) {
            return 1;
        }
        spin_wait();
    }
    return 0;
}

static void store_ll(char *slot, const char *payload, long bytes, uint32_t flag) {
    for (long at = 0; at < bytes; at += 4, slot += 8) {
        uint32_t data;
        memcpy(&data, payload + at, 4);
        __atomic_store_n((uint64_t *)slot, data | (uint64_t)flag << 32, __ATOMIC_RELAXED);
    }
}

/* Reads all lines of a slot at once: plain loads, and one fence before the data is read. */
static int await_ll(const uint64_t *halves, long count, uint32_t flag) {
    uint64_t wanted = (uint64_t)flag << 32;
    for (long i = 0; i < PATIENCE; i++) {
        uint64_t differing = 0;
        for (long half = 0; half < count; half++) {
            differing |= halves[half] ^ wanted;
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (differing >> 32 == 0) {
            return 1;
        }
        spin_wait();
    }
    return 0;
}

static int load_ll(const char *slot, char *payload, long bytes, uint32_t flag) {
    if (!await_ll((const uint64_t *)slot, bytes / 4, flag)) {
        return 0;
    }
    for (long at = 0; at < bytes; at += 4, slot += 8) {
        memcpy(payload + at, slot, 4);
    }
    return 1;
}

static void store_ll128(char *slot, const char *payload, long bytes, long flag) {
    for (long at = 0; at < bytes; at += LL128_DATA, slot += LL128_LINE) {
        memcpy(slot, payload + at, LL128_DATA);
        store_release(slot + LL128_DATA, flag); /* pairs with the acquire in load_ll128 */
    }
}

/* Waits for all lines of a slot. Reads no data before the last flag. */
static int await_ll128(const char *slot, long lines, long flag) {
    for (long i = 0; i < PATIENCE; i++) {
        long line = 0;
        while (line < lines && load_acquire(slot + line * LL128_LINE + LL128_DATA) == flag) {
            line++;
        }
        if (line == lines) {
            return 1;
        }
        spin_wait();
    }
    return 0;
}

static int load_ll128(const char *slot, char *payload, long bytes, long flag) {
    if (!await_ll128(slot, bytes / LL128_DATA, flag)) {
        return 0;
    }
    for (long at = 0; at < bytes; at += LL128_DATA, slot += LL128_LINE) {
        memcpy(payload + at, slot, LL128_DATA);
    }
    return 1;
}

enum protocol { PROTOCOL_SIMPLE, PROTOCOL_LL, PROTOCOL_LL128 };

static inline __attribute__((always_inline)) long post(char *memory, long *a, long count, enum protocol protocol) {
    long first = load_acquire(memory + a[HEAD]), end = first + count, bytes = a[PAYLOAD_BYTES];
    char *payload = (char *)a[PAYLOAD];
    long *samples = (long *)a[SAMPLES];
    long before = samples ? nanos() : 0;
    for (long step = first; step != end; step++) {
        if (!await(memory + a[HEAD], step + 1 - a[WINDOW])) {
            return LOST;
        }
        if (samples) {
            long now = nanos();
            samples[step - first] = now - before;
            before = now;
        }
        long slot = step & (SLOTS - 1);
        *size_of(memory, a, step) = bytes;
        if (protocol == PROTOCOL_LL) {
            store_ll(memory + a[LL] + slot * a[LL_SLOT_BYTES], payload, bytes, (uint32_t)(step + 1));
        } else if (protocol == PROTOCOL_LL128) {
            store_ll128(memory + a[LL128] + slot * a[LL128_SLOT_BYTES], payload, bytes, step + 1);
        } else {
            memcpy(memory + a[SIMPLE] + slot * a[SLOT_BYTES], payload, bytes);
            store_release(memory + a[TAIL], step + 1); /* pairs with the acquire of tail in take */
        }
    }
    return await(memory + a[HEAD], end) ? count : LOST;
}

static inline __attribute__((always_inline)) long take(char *memory, long *a, long count, enum protocol protocol) {
    long first = load_acquire(memory + a[HEAD]), end = first + count, bytes = a[PAYLOAD_BYTES], sum = 0;
    char *payload = (char *)a[PAYLOAD];
    for (long step = first; step != end; step++) {
        long slot = step & (SLOTS - 1);
        if (protocol == PROTOCOL_LL) {
            if (!load_ll(memory + a[LL] + slot * a[LL_SLOT_BYTES], payload, bytes, (uint32_t)(step + 1))) {
                return LOST;
            }
            sum += *size_of(memory, a, step);
        } else if (protocol == PROTOCOL_LL128) {
            if (!load_ll128(memory + a[LL128] + slot * a[LL128_SLOT_BYTES], payload, bytes, step + 1)) {
                return LOST;
            }
            sum += *size_of(memory, a, step);
        } else {
            if (!await(memory + a[TAIL], step + 1)) {
                return LOST;
            }
            sum += *size_of(memory, a, step);
            memcpy(payload, memory + a[SIMPLE] + slot * a[SLOT_BYTES], bytes);
        }
        *size_of(memory, a, step) = EMPTY;
        store_release(memory + a[HEAD], step + 1); /* pairs with the acquire of head in post */
    }
    return sum;
}

EXPORT long ring_post_simple(char *memory, long *a, long count) { return post(memory, a, count, PROTOCOL_SIMPLE); }
EXPORT long ring_post_ll(char *memory, long *a, long count) { return post(memory, a, count, PROTOCOL_LL); }
EXPORT long ring_post_ll128(char *memory, long *a, long count) { return post(memory, a, count, PROTOCOL_LL128); }
EXPORT long ring_take_simple(char *memory, long *a, long count) { return take(memory, a, count, PROTOCOL_SIMPLE); }
EXPORT long ring_take_ll(char *memory, long *a, long count) { return take(memory, a, count, PROTOCOL_LL); }
EXPORT long ring_take_ll128(char *memory, long *a, long count) { return take(memory, a, count, PROTOCOL_LL128); }
