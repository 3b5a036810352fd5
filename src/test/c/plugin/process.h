/* Counts the open resources of a process from outside the process. */
#ifndef MILLRACE_TEST_PROCESS_H
#define MILLRACE_TEST_PROCESS_H

#include "host.h"

#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

static inline long threads(void) {
  long count = 0;
  DIR *stream = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(stream));)
    count += entry->d_name[0] != '.';
  closedir(stream);
  return count;
}

/*
 * A joined thread is listed until the kernel has released it. The smallest count of many samples is the number of
 * threads that stay.
 */
static inline long lasting_threads(void) {
  long fewest = threads();
  for (int look = 0; look < 200; look++) {
    sched_yield();
    long now = threads();
    fewest = now < fewest ? now : fewest;
  }
  return fewest;
}

/*
 * The JVM's compiler and collector read /proc and /sys (cgroups) at any time. The plugin cannot close those
 * descriptors.
 */
static inline long descriptors(void) {
  long count = 0;
  DIR *stream = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(stream));) {
    char target[PATH_MAX] = "";
    ssize_t length = readlinkat(dirfd(stream), entry->d_name, target, sizeof target - 1);
    count += length > 0 && strncmp(target, "/proc/", 6) != 0 && strncmp(target, "/sys/", 5) != 0;
  }
  closedir(stream);
  return count;
}

static inline long lines(const char *file) {
  long count = 0;
  FILE *stream = fopen(file, "r");
  for (int c; (c = getc(stream)) != EOF;)
    count += c == '\n';
  fclose(stream);
  return count;
}

static inline long resident_kilobytes(void) {
  long total = 0, resident = 0;
  FILE *stream = fopen("/proc/self/statm", "r");
  REQUIRE(fscanf(stream, "%ld %ld", &total, &resident) == 2, "statm");
  fclose(stream);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/*
 * A compilation of the JVM can take 20 MiB, which the JVM frees up to five seconds later. A count waits until the
 * resident memory is near that of the first count. Leaked memory stays until the deadline.
 */
#define NEAR_KILOBYTES (8 << 10)
#define MEMORY_DEADLINE_MILLISECONDS 30000

static inline long settled_kilobytes(void) {
  static long first;
  long deadline = now_milliseconds() + MEMORY_DEADLINE_MILLISECONDS, resident;
  do {
    let_others_run();
    malloc_trim(0);
    resident = resident_kilobytes();
  } while (first && resident > first + NEAR_KILOBYTES && now_milliseconds() < deadline);
  if (!first)
    first = resident;
  return resident;
}

/* Number of threads that the test itself keeps. They are not counted. */
static long kept_threads;

/* Prints all counts in one line. */
static inline void print_process(const char *when, int number) {
  long kilobytes = settled_kilobytes();
  printf("%s %d: %ld fds, %ld threads, %ld mappings, %ld KiB\n", when, number, descriptors(),
         lasting_threads() - kept_threads, lines("/proc/self/maps"), kilobytes);
  fflush(stdout);
}

#endif
