/*
 * A process like libnccl's, with the plugin. It listens. When a line arrives on its standard input, it creates
 * CONNECTIONS to itself, one after the other, and sends a message over each. Usage: LIBRARY CONNECTIONS. It prints the
 * milliseconds of the first and of the slowest connection, and the maximum memory of the process.
 */
#define _GNU_SOURCE
#include "versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void wait_for(const net_t *net, void *request) {
  for (int done = 0, size; !done;)
    SUCCEEDS(net->test(request, &done, &size));
}

static double connect_once(const net_t *net, void *ctx, void *listenComm, char *handle, int number) {
  void *out = NULL, *in = NULL, *sent = NULL, *received = NULL, *outHandle, *inHandle;
  ncclNetDeviceHandle_t *device = NULL;
  double begin = milliseconds();
  while (!out || !in) {
    if (!out)
      SUCCEEDS(CONNECT(net, ctx, 0, handle, &out, &device));
    if (!in)
      SUCCEEDS(net->accept(listenComm, &in, &device));
  }
  double taken = milliseconds() - begin;
  static char from[BYTES], to[BYTES];
  memset(from, number + 1, BYTES);
  SUCCEEDS(net->regMr(out, from, BYTES, NCCL_PTR_HOST, &outHandle));
  SUCCEEDS(net->regMr(in, to, BYTES, NCCL_PTR_HOST, &inHandle));
  while (!received)
    SUCCEEDS(net_irecv(net, in, to, BYTES, inHandle, &received));
  while (!sent)
    SUCCEEDS(ISEND(net, out, from, BYTES, outHandle, &sent));
  wait_for(net, sent);
  wait_for(net, received);
  REQUIRE(memcmp(from, to, BYTES) == 0, "message %d is not what was sent", number);
  SUCCEEDS(net->deregMr(out, outHandle));
  SUCCEEDS(net->deregMr(in, inHandle));
  SUCCEEDS(net->closeSend(out));
  SUCCEEDS(net->closeRecv(in));
  return taken;
}

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY CONNECTIONS");
  const net_t *net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  void *ctx, *listenComm = NULL;
  char line[64];
  double first = 0, slowest = 0;
  SUCCEEDS(net_init(net, &ctx));
  printf("listens\n");
  fflush(stdout);
  int devices;
  SUCCEEDS(net->devices(&devices));
  for (int i = 0; i < atoi(arguments[2]); i++) {
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    SUCCEEDS(LISTEN(net, ctx, 0, handle, &listenComm));
    if (i == 0) {
      printf("ready\n");
      fflush(stdout);
      REQUIRE(fgets(line, sizeof line, stdin), "no line");
    }
    double taken = connect_once(net, ctx, listenComm, handle, i);
    SUCCEEDS(net->closeListen(listenComm));
    first = i == 0 ? taken : first;
    slowest = i > 0 && taken > slowest ? taken : slowest;
  }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("first %.0f slowest %.0f right %ld\n", first, slowest, used.ru_maxrss >> 10);
  fflush(stdout);
  REQUIRE(fgets(line, sizeof line, stdin), "no line");
  return 0;
}
