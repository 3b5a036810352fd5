/* Frames in one direction, as many in flight as a connection or a ring accepts. Both ends spin. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "frames.h"

/* Maximum number of frames that one call passes to the kernel or receives from it. */
enum { BATCH = 16 };

/*
 * Returns the ranges of memory from a position in a stream of frames to its end, for at most BATCH frames. All payloads
 * use the same memory.
 */
static int parts_of(struct iovec *parts, long place, long end, char *header, char *payload, long bytes) {
    int count = 0;
    for (int frame = 0; frame < BATCH && place < end; frame++) {
        long done = place % (HEADER + bytes);
        if (done < HEADER) {
            parts[count++] = (struct iovec){header + done, HEADER - done};
            place += HEADER - done;
            done = HEADER;
        }
        if (done < HEADER + bytes) {
            parts[count++] = (struct iovec){payload + done - HEADER, HEADER + bytes - done};
            place += HEADER + bytes - done;
        }
    }
    return count;
}

static long tcp_stream(int socket, long *a, long count, ssize_t (*move)(int, const struct iovec *, int)) {
    char header[HEADER] = {0};
    long place = 0, end = count * (HEADER + a[BYTES]);
    for (long patience = PATIENCE; place < end;) {
        struct iovec parts[2 * BATCH];
        ssize_t moved = move(socket, parts, parts_of(parts, place, end, header, (char *)a[PAYLOAD], a[BYTES]));
        if (moved > 0) {
            place += moved;
        } else if (moved == 0 || errno != EAGAIN || --patience == 0) {
            return LOST;
        }
    }
    return count;
}

EXPORT long frames_tcp_post(char *unused, long *a, long count) {
    (void)unused;
    return tcp_stream(a[SOCKET], a, count, writev);
}

EXPORT long frames_tcp_take(char *unused, long *a, long count) {
    (void)unused;
    return tcp_stream(a[OTHER_SOCKET], a, count, readv);
}

/*
 * One end of a ring while a loop runs. It reads the peer's position again only when the last known position is reached,
 * so that the cache line does not move for many frames. The first piece is published together with its header.
 * Millrace does both too.
 */
struct end {
    char *ring;
    long position, seen;
};

static struct end producer(char *ring) { return (struct end){ring, *(long *)(ring + PRODUCED), load_acquire(ring + CONSUMED)}; }
static struct end consumer(char *ring) { return (struct end){ring, *(long *)(ring + CONSUMED), load_acquire(ring + PRODUCED)}; }

static long aligned(long bytes) { return (bytes + 63) & ~63L; }

static int await_room(struct end *end, long bytes) {
    long least = end->position + bytes - CAPACITY, seen = end->seen;
    if (seen < least) {
        /* pairs with the release in ring_get, before which the peer has read the data to overwrite */
        for (long patience = PATIENCE; (seen = load_acquire(end->ring + CONSUMED)) < least; spin_wait()) {
            if (--patience == 0) {
                return 0;
            }
        }
        end->seen = seen;
    }
    return 1;
}

static int await_data(struct end *end) {
    long position = end->position, seen = end->seen;
    if (seen == position) {
        /* pairs with the release in ring_put, after which the data can be read */
        for (long patience = PATIENCE; (seen = load_acquire(end->ring + PRODUCED)) == position; spin_wait()) {
            if (--patience == 0) {
                return 0;
            }
        }
        end->seen = seen;
    }
    return 1;
}

static void copy_in(struct end *end, const char *from, long bytes) {
    long at = end->position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(end->ring + DATA + at, from, first);
    if (first < bytes) {
        memcpy(end->ring + DATA, from + first, bytes - first);
    }
    end->position += aligned(bytes);
}

static void copy_out(struct end *end, char *to, long bytes) {
    long at = end->position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(to, end->ring + DATA + at, first);
    if (first < bytes) {
        memcpy(to + first, end->ring + DATA, bytes - first);
    }
    end->position += aligned(bytes);
}

static int ring_put(struct end *end, const char *payload, long bytes) {
    static const char header[HEADER];
    long done = 0;
    do {
        long piece = bytes - done < PIECE ? bytes - done : PIECE;
        if (!await_room(end, (done == 0 ? HEADER : 0) + aligned(piece))) {
            return 0;
        }
        if (done == 0) {
            copy_in(end, header, HEADER);
        }
        if (piece > 0) {
            copy_in(end, payload + done, piece);
        }
        store_release(end->ring + PRODUCED, end->position); /* pairs with the acquire in await_data */
        done += piece;
    } while (done < bytes);
    return 1;
}

static int ring_get(struct end *end, char *payload, long bytes) {
    char header[HEADER];
    long done = 0;
    do {
        long piece = bytes - done < PIECE ? bytes - done : PIECE;
        if (!await_data(end)) {
            return 0;
        }
        if (done == 0) {
            copy_out(end, header, HEADER);
        }
        if (piece > 0) {
            copy_out(end, payload + done, piece);
        }
        store_release(end->ring + CONSUMED, end->position); /* pairs with the acquire in await_room */
        done += piece;
    } while (done < bytes);
    return 1;
}

EXPORT long frames_shm_post(char *rings, long *a, long count) {
    struct end there = producer(rings);
    for (long i = 0; i < count; i++) {
        if (!ring_put(&there, (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
}

EXPORT long frames_shm_take(char *rings, long *a, long count) {
    struct end there = consumer(rings);
    for (long i = 0; i < count; i++) {
        if (!ring_get(&there, (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
}
