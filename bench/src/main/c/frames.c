/* Frames, bare: a header of 64 bytes and a payload over a TCP connection or through a ring, both ends spinning. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"

enum { HEADER = 64 };
enum { BYTES, PAYLOAD, SOCKET, OTHER_SOCKET };

/* Makes a connection over the loopback; the arguments get both its ends. */
EXPORT long frames_tcp_open(char *unused, long *a, long count) {
    (void)unused;
    (void)count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(to, (struct sockaddr *)&address, length)) {
        return LOST;
    }
    int from = accept(listener, NULL, NULL);
    close(listener);
    int ends[] = {to, from};
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(ends[i], F_SETFL, fcntl(ends[i], F_GETFL) | O_NONBLOCK);
        a[SOCKET + i] = ends[i];
    }
    return 1;
}

static int tcp_send(int socket, char *payload, long bytes) {
    char header[HEADER] = {0};
    long sent = 0;
    for (long patience = PATIENCE; sent < HEADER + bytes && patience; patience--) {
        struct iovec parts[] = {{header + sent, HEADER - sent}, {payload, bytes}};
        int first = 0;
        if (sent >= HEADER) {
            parts[1] = (struct iovec){payload + sent - HEADER, HEADER + bytes - sent};
            first = 1;
        }
        ssize_t written = writev(socket, parts + first, 2 - first);
        if (written > 0) {
            sent += written;
        } else if (written < 0 && errno != EAGAIN) {
            return 0;
        }
    }
    return sent == HEADER + bytes;
}

static int tcp_fill(int socket, char *to, long bytes) {
    for (long patience = PATIENCE; bytes > 0 && patience; patience--) {
        ssize_t got = read(socket, to, bytes);
        if (got > 0) {
            to += got;
            bytes -= got;
        } else if (got == 0 || errno != EAGAIN) {
            return 0;
        }
    }
    return bytes == 0;
}

static int tcp_receive(int socket, char *payload, long bytes) {
    char header[HEADER];
    return tcp_fill(socket, header, HEADER) && tcp_fill(socket, payload, bytes);
}

EXPORT long frames_tcp_ping(char *unused, long *a, long count) {
    (void)unused;
    for (long i = 0; i < count; i++) {
        if (!tcp_send(a[SOCKET], (char *)a[PAYLOAD], a[BYTES]) || !tcp_receive(a[SOCKET], (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
}

EXPORT long frames_tcp_echo(char *unused, long *a, long count) {
    (void)unused;
    for (long i = 0; i < count; i++) {
        if (!tcp_receive(a[OTHER_SOCKET], (char *)a[PAYLOAD], a[BYTES]) || !tcp_send(a[OTHER_SOCKET], (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
}

/* One way: up to so many frames go to the kernel, or come from it, with one call. */
enum { BATCH = 16 };

/* What lies between a place in a stream of frames and its end, a batch of frames at the most. Their payloads are the same memory. */
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

/* A ring: producer's position, consumer's position, data; pieces of 128 KiB are published one by one, the first together with its header. */
enum { PRODUCED = 128, CONSUMED = 256, DATA = 4096, CAPACITY = 2 << 20, PIECE = 128 << 10, RING = DATA + CAPACITY };

/* One end of a ring while a loop runs. The other end's position is looked at again only when what was last seen of it is used up, so that its line stays where
 * it is for many frames. */
struct end {
    char *ring;
    long position, seen;
};

static struct end producer(char *ring) { return (struct end){ring, *(long *)(ring + PRODUCED), load_acquire(ring + CONSUMED)}; }
static struct end consumer(char *ring) { return (struct end){ring, *(long *)(ring + CONSUMED), load_acquire(ring + PRODUCED)}; }

static long aligned(long bytes) { return (bytes + 63) & ~63L; }

static int has_room(const struct end *end, long bytes) { return CAPACITY - (end->position - end->seen) >= bytes; }

static int await_room(struct end *end, long bytes) {
    for (long patience = PATIENCE; !has_room(end, bytes); patience--) {
        end->seen = load_acquire(end->ring + CONSUMED); /* pairs with the release in ring_get: what was read may be overwritten */
        if (has_room(end, bytes)) {
            return 1;
        }
        if (patience == 0) {
            return 0;
        }
        spin_wait();
    }
    return 1;
}

static int await_data(struct end *end) {
    for (long patience = PATIENCE; end->seen == end->position; patience--) {
        end->seen = load_acquire(end->ring + PRODUCED); /* pairs with the release in ring_put: the data can be read */
        if (end->seen != end->position) {
            return 1;
        }
        if (patience == 0) {
            return 0;
        }
        spin_wait();
    }
    return 1;
}

static void copy_in(struct end *end, const char *from, long bytes) {
    long at = end->position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(end->ring + DATA + at, from, first);
    memcpy(end->ring + DATA, from + first, bytes - first);
    end->position += aligned(bytes);
}

static void copy_out(struct end *end, char *to, long bytes) {
    long at = end->position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(to, end->ring + DATA + at, first);
    memcpy(to + first, end->ring + DATA, bytes - first);
    end->position += aligned(bytes);
}

static int ring_put(struct end *end, const char *payload, long bytes) {
    char header[HEADER] = {0};
    long done = 0;
    do {
        long piece = bytes - done < PIECE ? bytes - done : PIECE;
        if (!await_room(end, (done == 0 ? HEADER : 0) + aligned(piece))) {
            return 0;
        }
        if (done == 0) {
            copy_in(end, header, HEADER);
        }
        copy_in(end, payload + done, piece);
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
        copy_out(end, payload + done, piece);
        store_release(end->ring + CONSUMED, end->position); /* pairs with the acquire in await_room */
        done += piece;
    } while (done < bytes);
    return 1;
}

EXPORT long frames_shm_ping(char *rings, long *a, long count) {
    struct end there = producer(rings), back = consumer(rings + RING);
    for (long i = 0; i < count; i++) {
        if (!ring_put(&there, (char *)a[PAYLOAD], a[BYTES]) || !ring_get(&back, (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
}

EXPORT long frames_shm_echo(char *rings, long *a, long count) {
    struct end there = consumer(rings), back = producer(rings + RING);
    for (long i = 0; i < count; i++) {
        if (!ring_get(&there, (char *)a[PAYLOAD], a[BYTES]) || !ring_put(&back, (char *)a[PAYLOAD], a[BYTES])) {
            return LOST;
        }
    }
    return count;
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
