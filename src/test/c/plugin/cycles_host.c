/*
 * Creates and destroys a communicator of two ranks repeatedly in one process, and opens the plugin anew each time.
 * Prints the open resources of the process. Usage: LIBRARY CYCLES CHANNELS.
 */
#define _GNU_SOURCE
#include "communicator.h"
#include "process.h"

#define STEPS 40

static uint64_t seed = 1;

/* Size of an allocation that malloc makes in its heap, and not by a mapping. */
#define PIECE_BYTES (64 << 10)
#define PIECES 1024

/* Leaves free memory in malloc's heap: all allocations but the last are freed. Returns the last allocation. */
static void *leave_free_memory(void) {
  void *pieces[PIECES];
  for (int i = 0; i < PIECES; i++)
    memset(pieces[i] = malloc(PIECE_BYTES), 1, PIECE_BYTES);
  for (int i = 0; i < PIECES - 1; i++)
    free(pieces[i]);
  return pieces[PIECES - 1];
}

static void live_and_die(struct rank *rank) {
  static volatile int never;
  struct buffer_sizes sizes = buffer_sizes(0);
  struct kernel kernels[2 * MAX_CHANNELS];
  set_up(rank, &sizes);
  prepare_kernels(rank, kernels, STEPS, seed, &never);
  run_kernels(kernels, 2 * rank->channels);
  void *kept = seed == 2 && rank->number == 0 ? leave_free_memory() : NULL;
  long resident = resident_kilobytes();
  tear_down(rank);
  if (kept)
    printf("finalize returned %ld KiB\n", resident - resident_kilobytes());
  free(kept);
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
