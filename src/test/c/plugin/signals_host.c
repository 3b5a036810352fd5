/*
 * A host that handles signals itself, before and after the plugin has created a JVM. Usage: LIBRARY. The process
 * ends by SIGTERM, which has no handler.
 */
#define _GNU_SOURCE
#define NET_VERSION 11
#include "versions.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

static char *forbidden;
static volatile sig_atomic_t faults, interrupts;
static const net_t *net;

/* Repairs the fault, so that the instruction succeeds on the next attempt. */
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  if (info->si_addr != forbidden)
    _exit(3);
  faults++;
  mprotect(forbidden, PAGE, PROT_READ | PROT_WRITE);
}

static void on_interrupt(int signal) {
  (void)signal;
  interrupts++;
}

static void provoke_fault(void) {
  int before = faults;
  mprotect(forbidden, PAGE, PROT_NONE);
  *(volatile char *)forbidden = 1;
  REQUIRE(faults == before + 1, "%d faults", (int)faults);
}

static void *fault_on_new_thread(void *unused) {
  provoke_fault();
  int devices;
  SUCCEEDS(net->devices(&devices));
  provoke_fault();
  return unused;
}

static void check_handler(int signal, void *handler) {
  struct sigaction now;
  sigaction(signal, NULL, &now);
  REQUIRE((void *)now.sa_sigaction == handler || (void *)now.sa_handler == handler, "handler of %d", signal);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2, "usage: LIBRARY");
  struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  struct sigaction interrupt = {.sa_handler = on_interrupt};
  sigaction(SIGSEGV, &fault, NULL);
  sigaction(SIGINT, &interrupt, NULL);
  signal(SIGHUP, SIG_IGN);
  forbidden = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  provoke_fault();

  void *ctx;
  net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  SUCCEEDS(net_init(net, &ctx));

  check_handler(SIGINT, (void *)on_interrupt);
  check_handler(SIGHUP, (void *)SIG_IGN);
  check_handler(SIGTERM, (void *)SIG_DFL);
  check_handler(SIGQUIT, (void *)SIG_DFL);
  provoke_fault();
  pthread_t thread;
  pthread_create(&thread, NULL, fault_on_new_thread, NULL);
  pthread_join(thread, NULL);
  raise(SIGINT);
  REQUIRE(interrupts == 1, "%d interrupts", (int)interrupts);

  /* If this thread blocks SIGINT, the signal must stay pending, because no thread of the JVM may receive it. */
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  kill(getpid(), SIGINT);
  for (int i = 0; i < 1000; i++) {
    properties_t properties;
    SUCCEEDS(net->getProperties(0, &properties));
  }
  sigpending(&set);
  REQUIRE(interrupts == 1 && sigismember(&set, SIGINT), "a thread of the JVM took the host's signal");
  SUCCEEDS(net->finalize(ctx));
  printf("OK\n");
  fflush(stdout);
  raise(SIGTERM);
  return 4;
}
