/*
 * A line between two network namespaces, made of two TUN devices. Each direction has a bit rate, a delay for each
 * packet, and a queue of limited size before it. Packets that exceed the queue are lost.
 *
 *   delay_line NAMESPACE_A NAMESPACE_B BITS_PER_SECOND DELAY_MICROS QUEUE_BYTES    creates a device "line" in each and runs until it is killed
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PACKET 65536
#define PLACES 16384

struct packet {
  int64_t due;
  int bytes;
  unsigned char *data;
};

struct way {
  struct packet queue[PLACES];
  unsigned first, next;
  int64_t free; /* time at which the line has sent all earlier packets */
};

static struct way ways[2];

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int device(const char *name) {
  char path[300];
  snprintf(path, sizeof path, "/run/netns/%s", name);
  int space = open(path, O_RDONLY), tun;
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "line");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (space < 0 || setns(space, CLONE_NEWNET) || (tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK)) < 0 || ioctl(tun, TUNSETIFF, &request)) {
    perror(path);
    exit(2);
  }
  return tun;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s NAMESPACE_A NAMESPACE_B BITS_PER_SECOND DELAY_MICROS QUEUE_BYTES\n", argv[0]);
    return 1;
  }
  int fds[2] = {device(argv[1]), device(argv[2])};
  double nanosPerByte = 8e9 / atof(argv[3]);
  int64_t delay = atoll(argv[4]) * 1000, longest = (int64_t)(atof(argv[5]) * nanosPerByte);
  static unsigned char spare[PACKET];
  puts("ready");
  fflush(stdout);
  for (;;) {
    int64_t time = now(), soonest = time + 1000000000;
    int moved = 0;
    for (int from = 0; from < 2; from++) {
      struct way *way = &ways[from];
      for (int i = 0; i < 64; i++) {
        int bytes = read(fds[from], spare, PACKET);
        if (bytes <= 0)
          break;
        moved = 1;
        int64_t start = way->free > time ? way->free : time;
        if (start - time > longest || way->next - way->first == PLACES)
          continue; /* the packet is lost */
        way->free = start + (int64_t)(bytes * nanosPerByte);
        struct packet *packet = &way->queue[way->next++ % PLACES];
        packet->due = way->free + delay;
        packet->bytes = bytes;
        packet->data = malloc(bytes);
        memcpy(packet->data, spare, bytes);
      }
      while (way->first != way->next && way->queue[way->first % PLACES].due <= time) {
        struct packet *packet = &way->queue[way->first % PLACES];
        if (write(fds[1 - from], packet->data, packet->bytes) < 0 && errno == EAGAIN)
          break;
        free(packet->data);
        way->first++;
        moved = 1;
      }
      if (way->first != way->next && way->queue[way->first % PLACES].due < soonest)
        soonest = way->queue[way->first % PLACES].due;
    }
    if (!moved) {
      struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
      int64_t wait = soonest - now();
      struct timespec t = {wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0};
      ppoll(polled, 2, &t, NULL);
    }
  }
}
