/*
 * Two processes that hang while they connect, as in ncclCommInitRank. Rank 0 listens, and rank 1 has its handle. Usage:
 * LIBRARY WAY.
 * - accept: rank 0 waits in accept, and rank 1 never connects.
 * - absent: rank 0 waits as in NCCL's bootstrap, and rank 1 never initializes its communicator.
 * - connect: rank 1 waits in connect, and rank 0 never accepts.
 * - finish: the same as connect, until a line arrives on the standard input. Then rank 0 accepts.
 *
 * The program prints each rank's process, and "CONNECTED" once both ends exist. It runs until its standard input is
 * closed.
 */
#define _GNU_SOURCE
#include "communicator.h"

#include <signal.h>
#include <sys/prctl.h>

static const char *way;
static int go[2]; /* Pipe by which the first process tells rank 0 to accept. */

static int is(const char *name) {
  return strcmp(way, name) == 0;
}

static void run(struct rank *rank) {
  char handle[NCCL_NET_HANDLE_MAXSIZE], byte;
  struct connection *on = &rank->connections[0];
  *on = (struct connection){.sends = rank->number == 1};
  if (is("absent"))
    for (;;)
      pause();
  if (rank->number == 0) {
    SUCCEEDS(LISTEN(rank->net, rank->ctx, 0, handle, &on->listenComm));
    tell(rank, handle, sizeof handle);
  } else {
    char own[NCCL_NET_HANDLE_MAXSIZE];
    void *listener; /* NCCL's bootstrap is complete when a rank listens. */
    SUCCEEDS(LISTEN(rank->net, rank->ctx, 0, own, &listener));
    hear(rank, handle, sizeof handle);
  }
  if (rank->number == 1 && is("accept"))
    for (;;)
      pause();
  if (rank->number == 0 && !is("accept"))
    if (read(go[0], &byte, 1) < 1)
      for (;;)
        pause();
  while (!poll_connection(rank, on, handle))
    usleep(1000);
  meet(rank);
  if (rank->number == 0) {
    printf("CONNECTED\n");
    fflush(stdout);
  }
  for (;;)
    pause();
}

int main(int count, char **arguments) {
  int ends[RANKS], input;
  pid_t pids[RANKS];
  REQUIRE(count == 3, "usage: LIBRARY accept|absent|connect|finish");
  way = arguments[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && pipe(go) == 0, "no sockets");
  for (int i = 0; i < RANKS; i++) {
    char number[16];
    fflush(NULL);
    pids[i] = fork();
    REQUIRE(pids[i] >= 0, "no process");
    if (pids[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(go[1]);
      snprintf(number, sizeof number, "%d", i);
      setenv("RANK", number, 1);
      if (i == 1 && is("absent"))
        for (;;)
          pause();
      one_process(arguments[1], 1, run, i, ends[i]);
    }
    printf("rank %d is pid %d\n", i, (int)pids[i]);
    fflush(stdout);
  }
  while ((input = getchar()) != EOF)
    if (input == '\n' && is("finish"))
      REQUIRE(write(go[1], "", 1) == 1, "no pipe");
  for (int i = 0; i < RANKS; i++) {
    kill(pids[i], SIGKILL);
    waitpid(pids[i], NULL, 0);
  }
  return 0;
}
