/* Makes and destroys a communicator of two ranks again and again in one process, each time with the plugin opened
 * anew, and says what the process has open: usage LIBRARY CYCLES CHANNELS. */
#define _GNU_SOURCE
#include "communicator.h"

#include <dirent.h>
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

static long entries(const char *directory) {
  long count = 0;
  DIR *stream = opendir(directory);
  while (readdir(stream))
    count++;
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
      printf("after %d: %ld fds, %ld threads, %ld mappings, %ld KiB\n", cycle, entries("/proc/self/fd"),
             entries("/proc/self/task"), lines("/proc/self/maps"), resident_kilobytes());
      fflush(stdout);
    }
  }
  printf("OK " TABLE_NAME "\n");
  return 0;
}
