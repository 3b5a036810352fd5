/*
 * The minimum work of a proxy: the accesses to the shared memory and the copy. It omits the frames, the checks and the
 * bookkeeping between them.
 */
#include <string.h>

#include "bench.h"

enum { CONNECTIONS, STRIDE };

/* Makes a pass over connections without work: reads each connection's tail. */
EXPORT long proxy_pass(char *memory, long *a, long count) {
    long sum = 0;
    for (long pass = 0; pass < count; pass++) {
        for (long connection = 0; connection < a[CONNECTIONS]; connection++) {
            sum += load_acquire(memory + connection * a[STRIDE]);
        }
    }
    return sum;
}

enum { BYTES, FROM, TO };
enum { HEAD = 0, TAIL = 4096, SIZE = 4096 + 128, SIDE = 8192 };

/* Moves a slice from device to device: post, copy, free the slots, announce, consume. */
EXPORT long proxy_step(char *memory, long *a, long count) {
    char *send = memory, *receive = memory + SIDE;
    for (long i = 0; i < count; i++) {
        *(long *)(send + SIZE) = a[BYTES];
        store_release(send + TAIL, i + 1);
        if (load_acquire(send + TAIL) != i + 1) {
            return LOST;
        }
        memcpy((char *)a[TO], (char *)a[FROM], *(long *)(send + SIZE));
        __asm__ volatile("" ::: "memory");
        *(long *)(send + SIZE) = -1;
        store_release(send + HEAD, i + 1);
        store_release(receive + TAIL, i + 1);
        store_release(receive + HEAD, load_acquire(receive + TAIL));
    }
    return count;
}
