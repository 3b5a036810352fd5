/* What a host tells a kernel that copies for it, and what that answers: memory of the host's that both reach. Our own. */
#ifndef MILLRACE_COPY_MAILBOX_H
#define MILLRACE_COPY_MAILBOX_H

#include <stdint.h>

#define MILLRACE_COPY_COMMANDS 64
#define MILLRACE_COPY_WORDS 5

/* In millraceCopyMailbox.state. The host stores the first, the kernel the others. */
#define MILLRACE_COPY_ABSENT 0
#define MILLRACE_COPY_PRESENT 1
#define MILLRACE_COPY_LEAVING 2
#define MILLRACE_COPY_GONE 3

/* In the upper half of millraceCopyCommand.bytes: from is no address, but the bytes themselves. */
#define MILLRACE_COPY_VALUE 0x80000000

/* Words as the lines of LL: 4 bytes of data, then the command's number. Whoever reads a word sees both halves or none. */
typedef struct millraceCopyCommand {
  uint64_t toLow;
  uint64_t toHigh;
  uint64_t fromLow;
  uint64_t fromHigh;
  uint64_t bytes;
  uint64_t reserved[3];
} __attribute__((aligned(64))) millraceCopyCommand;

/* Command n lies at n modulo their number. done is the number of the first that was not carried out. */
typedef struct millraceCopyMailbox {
  millraceCopyCommand commands[MILLRACE_COPY_COMMANDS];
  uint32_t done;
  char pad1[124];
  uint32_t state;
  char pad2[124];
} __attribute__((aligned(128))) millraceCopyMailbox;

#endif
