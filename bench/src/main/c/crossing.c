/* Functions that are called, and loops that call. */
#include <errno.h>

#include "bench.h"

EXPORT long crossing_callee(long value) { return value + 1; }

/* Sets errno as a failing system call does, so that capturing it has an effect. */
EXPORT long crossing_failing(long value) {
    errno = (int)(value & 7);
    return value + 1;
}

typedef long (*callee)(long);

/* Reads the pointer again for each call, so that the cost includes the call of a function that was looked up. */
EXPORT long crossing_call(char *unused, long *arguments, long count) {
    (void)unused;
    long sum = 0;
    for (long i = 0; i < count; i++) {
        callee function = *(callee volatile *)arguments;
        sum += function(i);
    }
    return sum;
}

EXPORT long crossing_call_errno(char *unused, long *arguments, long count) {
    (void)unused;
    long sum = 0;
    for (long i = 0; i < count; i++) {
        callee function = *(callee volatile *)arguments;
        sum += function(i) + errno;
    }
    return sum;
}
