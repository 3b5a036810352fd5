/* Children that outlive the host, and the descriptors that they inherit from it. */
#ifndef MILLRACE_TEST_CHILDREN_H
#define MILLRACE_TEST_CHILDREN_H

#include "host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 2
#define MOST_DESCRIPTORS 256

/* Flags of each descriptor before the plugin was loaded. Negative if the descriptor is closed. */
static int descriptors_before[MOST_DESCRIPTORS];

static inline void look_at_descriptors(int flags[MOST_DESCRIPTORS]) {
  for (int i = 0; i < MOST_DESCRIPTORS; i++)
    flags[i] = fcntl(i, F_GETFD);
}

/*
 * Returns whether children must not keep a file open. Memory is not such a file, because a forked child maps it anyway.
 */
static inline int stays(const char *target) {
  static const char *const kinds[] = {"socket:", "pipe:", "anon_inode:", ".trace", ".jar", "/lib/modules"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strstr(target, kinds[i]))
      return 1;
  return 0;
}

/* Returns the number of the plugin's descriptors that are open in the calling child. */
static inline int descriptors_of_plugin(void) {
  int now[MOST_DESCRIPTORS], count = 0;
  look_at_descriptors(now);
  for (int i = 0; i < MOST_DESCRIPTORS; i++)
    if (now[i] >= 0 && descriptors_before[i] < 0) {
      char link[32], target[256];
      snprintf(link, sizeof link, "/proc/self/fd/%d", i);
      ssize_t length = readlink(link, target, sizeof target - 1);
      target[length > 0 ? length : 0] = 0;
      if (!stays(target))
        continue;
      REQUIRE(now[i] & FD_CLOEXEC, "descriptor %d (%s) is not closed on exec", i, target);
      count++;
    }
  return count;
}

/* Creates children like those of a data loader. */
static inline void leave_children(pid_t *children) {
  int ready[2], descriptors = descriptors_of_plugin();
  REQUIRE(descriptors > 0, "the plugin has opened nothing");
  printf("the host has %d descriptors of the plugin's\n", descriptors);
  fflush(NULL);
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0, "no pipe");
  descriptors_before[ready[0]] = descriptors_before[ready[1]] = FD_CLOEXEC;
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    REQUIRE(child >= 0, "no child");
    if (child == 0) {
      printf("child %d has %d descriptors of the plugin's\n", i, descriptors_of_plugin());
      fflush(NULL);
      if (i == 0)
        execlp("sleep", "sleep", "60", NULL);
      close(ready[1]);
      alarm(60);
      pause();
      _exit(1);
    }
    children[i] = child;
  }
  close(ready[1]);
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 0, "more than an end");
}

/* Makes the calling process adopt the children of a rank that is killed. */
static inline void adopt_orphans(void) {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "not the parent of orphans");
}

/* Ends the children after all ranks have ended. This process has adopted them. */
static inline void end_children(const pid_t *children) {
  for (int i = 0; i < CHILDREN; i++) {
    int status;
    REQUIRE(waitpid(children[i], &status, WNOHANG) == 0, "child %d has ended", i);
    kill(children[i], SIGKILL);
    REQUIRE(waitpid(children[i], &status, 0) == children[i], "wait");
    printf("child %d has outlived all ranks\n", i);
  }
}

#endif
