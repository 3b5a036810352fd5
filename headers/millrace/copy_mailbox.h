/* What a host tells a kernel that copies for it, and what that answers: memory of the host's that both reach. Our own. */
#ifndef MILLRACE_COPY_MAILBOX_H
#define MILLRACE_COPY_MAILBOX_H

#include <stdint.h>

#define MILLRACE_COPY_COMMANDS 256
#define MILLRACE_COPY_WORDS 4
/* Blocks of threads that make the longer copies. */
#define MILLRACE_COPY_WORKERS 32
/* As many copies may be given to a worker before it has made the first of them. */
#define MILLRACE_COPY_GIVEN 64

/* A word's upper 16 bits are those that are the lower ones of its command's number: whoever reads the word sees them with it. */
#define MILLRACE_COPY_NUMBER_SHIFT 48
/* In the third word: the upper bits of from, behind those of to. */
#define MILLRACE_COPY_FROM_SHIFT 16
/* In the fourth word: who copies. 0 is the warp that reads the commands, others are workers. */
#define MILLRACE_COPY_WORKER_SHIFT 32
/* Behind it: whether the copy must not be seen before those that the worker was given earlier. */
#define MILLRACE_COPY_ORDERED_SHIFT 40

/* In millraceCopyMailbox.state. The host stores the first, the kernel the others. */
#define MILLRACE_COPY_ABSENT 0
#define MILLRACE_COPY_PRESENT 1
#define MILLRACE_COPY_LEAVING 2
#define MILLRACE_COPY_GONE 3
/* With the second, the number of the stream in which the kernel was launched. */
#define MILLRACE_COPY_STREAM_SHIFT 8

/* The first two words have the lower 48 bits of the addresses, the third their upper 16 bits, the fourth how many bytes, who copies, and in which
 * order. */
typedef struct millraceCopyCommand {
  uint64_t to;
  uint64_t from;
  uint64_t upper;
  uint64_t work;
} __attribute__((aligned(32))) millraceCopyCommand;

/* Command n lies at n modulo their number. done is the number of the first that was neither carried out nor given to a worker; copied is how many copies each
 * worker has made, since the memory was zeroed. */
typedef struct millraceCopyMailbox {
  millraceCopyCommand commands[MILLRACE_COPY_COMMANDS];
  uint32_t done;
  uint32_t copied[MILLRACE_COPY_WORKERS];
  char pad1[124];
  uint32_t state;
  char pad2[124];
} __attribute__((aligned(128))) millraceCopyMailbox;

#endif
