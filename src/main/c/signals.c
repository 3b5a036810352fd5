/* Keeps the host's signals away from Java's threads, and Java's from the host. */
#define _GNU_SOURCE
#include "descriptors.h"
#include "shim.h"

#include <dlfcn.h>

/* What handled SIGSEGV when the JVM was there: null once its loss has been told of, and with libjsig. Stored with release in millraceKnowHandler, which pairs
 * with the acquire load in check_handler. */
static void *handler;

/* sa_handler and sa_sigaction are a union. */
static void *handler_of(int signal) {
  struct sigaction now;
  return sigaction(signal, NULL, &now) == 0 ? (void *)now.sa_sigaction : NULL;
}

/* libjsig lies before the C library, and keeps both handlers: the JVM's is called first. */
void millraceKnowHandler(void) {
  if (!dlsym(RTLD_DEFAULT, "JVM_begin_signal_setting"))
    __atomic_store_n(&handler, handler_of(SIGSEGV), __ATOMIC_RELEASE);
}

static void check_handler(void) {
  void *known = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
  if (known && handler_of(SIGSEGV) != known && __atomic_exchange_n(&handler, NULL, __ATOMIC_RELAXED))
    millraceWarn("the program has set a handler of its own for SIGSEGV since the JVM was started. A JVM gets that signal in "
                 "normal operation, and the program may end by it: set the handler before NCCL is initialized, or start "
                 "the program with LD_PRELOAD=%slibjsig.so",
                 millraceJdk());
}

void millraceBlockSignals(sigset_t *before) {
  check_handler();
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
