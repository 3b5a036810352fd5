/* Plain frames: a header of 64 bytes and a payload, over a TCP connection or through a ring. Both ends spin. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "frames.h"

/* Creates a connection over loopback. Stores both its ends in the arguments. */
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

static int ring_put(char *ring, const char *from, long bytes) {
    long position = *(long *)(ring + PRODUCED);
    for (long patience = PATIENCE; CAPACITY - (position - load_acquire(ring + CONSUMED)) < bytes; spin_wait()) {
        if (--patience == 0) {
            return 0;
        }
    }
    long at = position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(ring + DATA + at, from, first);
    memcpy(ring + DATA, from + first, bytes - first);
    store_release(ring + PRODUCED, position + ((bytes + 63) & ~63L));
    return 1;
}

static int ring_get(char *ring, char *to, long bytes) {
    long position = *(long *)(ring + CONSUMED);
    for (long patience = PATIENCE; load_acquire(ring + PRODUCED) == position; spin_wait()) {
        if (--patience == 0) {
            return 0;
        }
    }
    long at = position & (CAPACITY - 1), first = bytes < CAPACITY - at ? bytes : CAPACITY - at;
    memcpy(to, ring + DATA + at, first);
    memcpy(to + first, ring + DATA, bytes - first);
    store_release(ring + CONSUMED, position + ((bytes + 63) & ~63L));
    return 1;
}

static int ring_move(char *ring, char *payload, long bytes, int (*move)(char *, char *, long)) {
    char header[HEADER] = {0};
    if (!move(ring, header, HEADER)) {
        return 0;
    }
    for (long done = 0; done < bytes; done += PIECE) {
        if (!move(ring, payload + done, bytes - done < PIECE ? bytes - done : PIECE)) {
            return 0;
        }
    }
    return 1;
}

static int put(char *ring, char *payload, long bytes) { return ring_put(ring, payload, bytes); }

EXPORT long frames_shm_ping(char *rings, long *a, long count) {
    for (long i = 0; i < count; i++) {
        if (!ring_move(rings, (char *)a[PAYLOAD], a[BYTES], put) || !ring_move(rings + RING, (char *)a[PAYLOAD], a[BYTES], ring_get)) {
            return LOST;
        }
    }
    return count;
}

EXPORT long frames_shm_echo(char *rings, long *a, long count) {
    for (long i = 0; i < count; i++) {
        if (!ring_move(rings, (char *)a[PAYLOAD], a[BYTES], ring_get) || !ring_move(rings + RING, (char *)a[PAYLOAD], a[BYTES], put)) {
            return LOST;
        }
    }
    return count;
}
