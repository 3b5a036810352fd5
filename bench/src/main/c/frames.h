/* Layout of a frame, of the arguments and of the rings. */
#ifndef MILLRACE_BENCH_FRAMES_H
#define MILLRACE_BENCH_FRAMES_H

#include "bench.h"

enum { HEADER = 64 };
enum { BYTES, PAYLOAD, SOCKET, OTHER_SOCKET };

/* A ring: producer's position, consumer's position, data. Pieces of 128 KiB are published one by one. */
enum { PRODUCED = 128, CONSUMED = 256, DATA = 4096, CAPACITY = 2 << 20, PIECE = 128 << 10, RING = DATA + CAPACITY };

#endif
