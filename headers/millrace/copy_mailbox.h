/*
 * Commands of a host for a copy kernel, and the kernel's answers. They lie in host memory that both access. This is
 * Millrace's own interface.
 */
#ifndef MILLRACE_COPY_MAILBOX_H
#define MILLRACE_COPY_MAILBOX_H

#include <stdint.h>

#define MILLRACE_COPY_COMMANDS 256
#define MILLRACE_COPY_WORDS 4
/* Number of workers, which make the longer copies. */
#define MILLRACE_COPY_WORKERS 32
/* Maximum number of copies that a worker may hold before it has made the first. */
#define MILLRACE_COPY_GIVEN 64

/* A word's upper 16 bits are the lower 16 bits of its command's number. A reader of the word reads both at once. */
#define MILLRACE_COPY_NUMBER_SHIFT 48
/* In the third word: the upper bits of from, above the upper bits of to. */
#define MILLRACE_COPY_FROM_SHIFT 16
/* In the fourth word: the copier. 0 is the warp that reads the commands, and others are workers. */
#define MILLRACE_COPY_WORKER_SHIFT 32
/* Above it: whether the copy must not become visible before earlier copies of the same worker. */
#define MILLRACE_COPY_ORDERED_SHIFT 40
/* Above it: whether the kernel stays longer because of this copy. */
#define MILLRACE_COPY_EXTENDS_SHIFT 41

/* Values of millraceCopyMailbox.state. The host stores the first, the kernel the others. */
#define MILLRACE_COPY_ABSENT 0
#define MILLRACE_COPY_PRESENT 1
#define MILLRACE_COPY_LEAVING 2
#define MILLRACE_COPY_GONE 3
/* Combined with the second, the number of the kernel's stream. */
#define MILLRACE_COPY_STREAM_SHIFT 8

/*
 * The first two words contain the lower 48 bits of the addresses, and the third their upper 16 bits. The fourth
 * contains the number of bytes, the copier, the order and whether the kernel stays longer.
 */
typedef struct millraceCopyCommand {
  uint64_t to;
  uint64_t from;
  uint64_t upper;
  uint64_t work;
} __attribute__((aligned(32))) millraceCopyCommand;

/*
 * Command n lies at n modulo the number of commands. done is the number of the first command that was neither executed
 * nor given to a worker. copied is the number of copies that each worker has made since the memory was zeroed.
 */
typedef struct millraceCopyMailbox {
  millraceCopyCommand commands[MILLRACE_COPY_COMMANDS];
  uint32_t done;
  uint32_t copied[MILLRACE_COPY_WORKERS];
  char pad1[124];
  uint32_t state;
  char pad2[124];
} __attribute__((aligned(128))) millraceCopyMailbox;

#endif
