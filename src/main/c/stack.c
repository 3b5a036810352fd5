/*
 * Checks whether Java can run on the calling thread's stack. A JVM that cannot guard the end of a thread's stack
 * terminates the process. If a class initializer runs out of stack, the class stays unusable. The JVM knows only the
 * stack with which the thread was created, so a coroutine with another stack cannot call Java.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <pthread.h>

/* Minimum stack that must be left, in bytes. Guards need 96 KiB, and 128 KiB were too little for the first calls. */
#define LEAST_STACK_BYTES (192 << 10)

static __thread struct {
  uintptr_t low, high; /* 0 before the first call */
  int warned;
} stack;

static void find_stack(void) {
  pthread_attr_t attributes;
  void *low;
  size_t bytes;
  stack.high = UINTPTR_MAX; /* the stack counts as sufficient if its limits are unknown */
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    stack.low = (uintptr_t)low;
    stack.high = (uintptr_t)low + bytes;
  }
  pthread_attr_destroy(&attributes);
}

int millraceOnStack(const void *address) {
  if (!stack.high)
    find_stack();
  return (uintptr_t)address >= (uintptr_t)__builtin_frame_address(0) && (uintptr_t)address < stack.high;
}

static void warn(uintptr_t here) {
  if (stack.warned)
    return;
  stack.warned = 1;
  if (here >= stack.low && here < stack.high)
    millraceWarn("a thread that calls NCCL has %zu KiB left of its stack, and Java needs %d: give it a larger one "
                 "(pthread_attr_setstacksize, ulimit -s)",
                 (size_t)(here - stack.low) >> 10, LEAST_STACK_BYTES >> 10);
  else
    millraceWarn("NCCL is called on a stack that is not its thread's own, as a coroutine has one, and Java cannot run "
                 "there: call NCCL on a thread's own stack");
}

int millraceStackFits(void) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (!stack.high)
    find_stack();
  if (here < stack.high && here >= stack.low && here - stack.low >= LEAST_STACK_BYTES)
    return 1;
  warn(here);
  return 0;
}
