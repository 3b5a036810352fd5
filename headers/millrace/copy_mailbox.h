/* What a host tells a kernel that copies for it, and what that answers: memory of the host's that both reach. Our own. */
#ifndef MILLRACE_COPY_MAILBOX_H
#define MILLRACE_COPY_MAILBOX_H

#include <stdint.h>

#define MILLRACE_COPY_COMMANDS 64
#define MILLRACE_COPY_WORDS 3

/* A word's upper 16 bits are those that are the lower ones of its command's number: whoever reads the word sees them with it. */
#define MILLRACE_COPY_NUMBER_SHIFT 48
/* What the third word has of the two addresses, and how many bytes. */
#define MILLRACE_COPY_FROM_SHIFT 16
#define MILLRACE_COPY_BYTES_SHIFT 32
/* Among the bytes: from is no address, but the bytes themselves, 4 or 8. */
#define MILLRACE_COPY_VALUE 0x8000

/* In millraceCopyMailbox.state. The host stores the first, the kernel the others. */
#define MILLRACE_COPY_ABSENT 0
#define MILLRACE_COPY_PRESENT 1
#define MILLRACE_COPY_LEAVING 2
#define MILLRACE_COPY_GONE 3

/* The first two words have the lower 48 bits of the addresses, the third their upper 16 bits and how many bytes. */
typedef struct millraceCopyCommand {
  uint64_t to;
  uint64_t from;
  uint64_t rest;
  uint64_t reserved;
} __attribute__((aligned(32))) millraceCopyCommand;

/* Command n lies at n modulo their number. done is the number of the first that was not carried out. */
typedef struct millraceCopyMailbox {
  millraceCopyCommand commands[MILLRACE_COPY_COMMANDS];
  uint32_t done;
  char pad1[124];
  uint32_t state;
  char pad2[124];
} __attribute__((aligned(128))) millraceCopyMailbox;

#endif
