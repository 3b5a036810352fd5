/*
 * The proxy's answer to a GPU that posts steps. It waits for tail and answers on head. FlagAnswer.java has the same
 * loop.
 */
#include "bench.h"

enum { HEAD, TAIL, SAMPLES };

EXPORT long gpu_answer(char *memory, long *a, long count) {
    char *tail = memory + a[TAIL], *head = memory + a[HEAD];
    long *samples = (long *)a[SAMPLES];
    long first = load_acquire(head);
    for (long step = first; step != first + count; step++) {
        long patience = PATIENCE;
        while (load_acquire(tail) - step <= 0) {
            if (--patience == 0) {
                return LOST;
            }
        }
        if (samples) {
            samples[step - first] = nanos();
        }
        store_release(head, step + 1);
    }
    return count;
}
