/* Makes and destroys a communicator of two ranks again and again in one process, each time with the plugin opened
 * anew, and says what the process has open: usage LIBRARY CYCLES CHANNELS. */
#define _GNU_SOURCE
#include "communicator.h"

#include <dirent.h>
#include <limits.h>
#include <malloc.h>

#define STEPS 40

static uint64_t seed = 1;

static void live_and_die(struct rank *rank) {
  static volatile int never;
  struct buffer_sizes sizes = buffer_sizes(0);
  struct kernel kernels[2 * MAX_CHANNELS];
  set_up(rank, &sizes);
  prepare_kernels(rank, kernels, STEPS, seed, &never);
  run_kernels(kernels, 2 * rank->channels);
  tear_down(rank);
}

static long threads(void) {
  long count = 0;
  DIR *stream = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(stream));)
    count += entry->d_name[0] != '.';
  closedir(stream);
  return count;
}

/* A thread that was joined is listed until the kernel is done with it: the fewest of many looks are those that stay. */
static long lasting_threads(void) {
  long fewest = threads();
  for (int look = 0; look < 200; look++) {
    sched_yield();
    long now = threads();
    fewest = now < fewest ? now : fewest;
  }
  return fewest;
}

/* The JVM's compiler and collector read /proc and /sys (cgroups) at any time; those are not ours to close. */
static long descriptors(void) {
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

static long lines(const char *file) {
  long count = 0;
  FILE *stream = fopen(file, "r");
  for (int c; (c = getc(stream)) != EOF;)
    count += c == '\n';
  fclose(stream);
  return count;
}

static long resident_kilobytes(void) {
  long total = 0, resident = 0;
  FILE *stream = fopen("/proc/self/statm", "r");
  REQUIRE(fscanf(stream, "%ld %ld", &total, &resident) == 2, "statm");
  fclose(stream);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY CYCLES CHANNELS");
  int cycles = atoi(arguments[2]);
  for (int cycle = 1; cycle <= cycles; cycle++) {
    seed++;
    two_threads(arguments[1], atoi(arguments[3]), live_and_die);
    if (cycle % 20 == 0) {
      malloc_trim(0);
      printf("after %d: %ld fds, %ld threads, %ld mappings, %ld KiB\n", cycle, descriptors(),
             lasting_threads(), lines("/proc/self/maps"), resident_kilobytes());
      fflush(stdout);
    }
  }
  printf("OK " TABLE_NAME "\n");
  return 0;
}
