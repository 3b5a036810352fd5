/*
 * Two ranks over connections that are taken over. Kernels of all protocols run at both ends of several channels, in
 * both directions at once. Usage: LIBRARY threads|processes CHANNELS STEPS SEED small|usual.
 */
#define _GNU_SOURCE
#include "communicator.h"

static long steps;
static uint64_t seed;
static struct buffer_sizes sizes;

static void traffic(struct rank *rank) {
  static volatile int never;
  struct kernel kernels[2 * MAX_CHANNELS];
  set_up(rank, &sizes);
  prepare_kernels(rank, kernels, steps, seed, &never);
  run_kernels(kernels, 2 * rank->channels);
  for (int i = 0; i < 2 * rank->channels; i++) {
    if (kernels[i].on->sends)
      check_all_sent(&kernels[i]);
    else
      check_sizes_untouched(&kernels[i]);
  }
  print_direction(rank, kernels, 1);
  print_direction(rank, kernels, 0);
  tear_down(rank);
  if (host_slots_on_device())
    print_copies(rank->number);
}

int main(int count, char **arguments) {
  REQUIRE(count == 7, "usage: LIBRARY threads|processes CHANNELS STEPS SEED small|usual");
  int channels = atoi(arguments[3]);
  REQUIRE(channels >= 1 && channels <= MAX_CHANNELS, "channels");
  steps = atol(arguments[4]);
  seed = strtoull(arguments[5], NULL, 0);
  sizes = buffer_sizes(strcmp(arguments[6], "usual") == 0);
  if (strcmp(arguments[2], "threads") == 0)
    two_threads(arguments[1], channels, traffic);
  else
    REQUIRE(two_processes(arguments[1], channels, traffic) == 0, "rank 1 failed");
  printf("OK " TABLE_NAME "\n");
  return 0;
}
