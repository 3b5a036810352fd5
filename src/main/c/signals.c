/* Keeps the host's signals away from Java's threads. */
#define _GNU_SOURCE
#include "shim.h"

void millraceBlockSignals(sigset_t *before) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  sigset_t set;
  sigfillset(&set);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(&set, faults[i]);
  pthread_sigmask(SIG_BLOCK, &set, before);
}

void millraceRestoreSignals(const sigset_t *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}
