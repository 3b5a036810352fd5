/* Makes and destroys a communicator of two ranks again and again in one process, each time with the plugin opened
 * anew, and says what the process has open: usage LIBRARY CYCLES CHANNELS. */
#define _GNU_SOURCE
#include "communicator.h"
#include "process.h"

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

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY CYCLES CHANNELS");
  int cycles = atoi(arguments[2]);
  for (int cycle = 1; cycle <= cycles; cycle++) {
    seed++;
    two_threads(arguments[1], atoi(arguments[3]), live_and_die);
    if (cycle % 20 == 0)
      print_process("after", cycle);
  }
  printf("OK " TABLE_NAME "\n");
  return 0;
}
