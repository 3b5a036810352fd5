/*
 * A network between hosts that loses, delays and reorders packets. Usage: LOSS-PER-MILLE DELAY-MS JITTER-MS PID... Each
 * PID is a process in a host's network namespace. The host receives an interface wan0 with the address 10.78.0.(n+1). A
 * packet to another host is lost, or arrives after the delay plus up to the jitter. The program prints "ready". When
 * its standard input is closed, it prints the number of lost packets and exits.
 */
#define _GNU_SOURCE
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

#define MOST_HOSTS 8
#define MOST_WAITING 4096
#define PACKET 2048
#define IPV4_DESTINATION 16

#define REQUIRE(condition, what)      \
  do {                                \
    if (!(condition)) {               \
      perror(what);                   \
      exit(1);                        \
    }                                 \
  } while (0)

struct packet {
  int to;
  ssize_t bytes;
  char data[PACKET];
};

static struct packet waiting[MOST_WAITING];
/* Time when a packet is due, 0 if the entry is free. A separate array, because the program reads all entries often. */
static int64_t due[MOST_WAITING];

static int64_t now_microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int open_interface(long pid, int host) {
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  char text[160];
  snprintf(text, sizeof text, "/proc/%ld/ns/net", pid);
  int namespace = open(text, O_RDONLY);
  REQUIRE(namespace >= 0 && setns(namespace, CLONE_NEWNET) == 0, text);
  close(namespace);
  int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  strcpy(request.ifr_name, "wan0");
  REQUIRE(tun >= 0 && ioctl(tun, TUNSETIFF, &request) == 0, "wan0");
  snprintf(text, sizeof text, "ip address add 10.78.0.%d/24 dev wan0 && ip link set wan0 up", host + 1);
  REQUIRE(system(text) == 0, text);
  return tun;
}

/* If there is no room, the packet stays in its source queue. */
static int take(int from, int hosts, int64_t when) {
  for (int i = 0; i < MOST_WAITING; i++)
    if (due[i] == 0) {
      struct packet *each = &waiting[i];
      each->bytes = read(from, each->data, PACKET);
      each->to = each->bytes > IPV4_DESTINATION + 3 ? each->data[IPV4_DESTINATION + 3] - 1 : -1;
      due[i] = each->bytes > 0 && each->to >= 0 && each->to < hosts ? when : 0;
      return each->bytes > 0;
    }
  return 0;
}

int main(int count, char **arguments) {
  struct pollfd ends[MOST_HOSTS + 1] = {{.fd = 0, .events = POLLIN}};
  char lost[PACKET];
  long losses = 0;
  int hosts = count - 4;
  REQUIRE(hosts >= 2 && hosts <= MOST_HOSTS, "LOSS-PER-MILLE DELAY-MS JITTER-MS PID...");
  long loss = atol(arguments[1]), delay = 1000 * atol(arguments[2]), jitter = 1000 * atol(arguments[3]);
  for (int i = 0; i < hosts; i++)
    ends[i + 1] = (struct pollfd){.fd = open_interface(atol(arguments[i + 4]), i), .events = POLLIN};
  srandom(4711);
  puts("ready");
  fflush(stdout);
  for (;;) {
    int64_t now = now_microseconds();
    for (int i = 0; i < MOST_WAITING; i++)
      if (due[i] != 0 && due[i] <= now) {
        if (write(ends[waiting[i].to + 1].fd, waiting[i].data, (size_t)waiting[i].bytes) < 0)
          losses++;
        due[i] = 0;
      }
    poll(ends, (nfds_t)hosts + 1, 1);
    if (ends[0].revents) {
      printf("%ld lost\n", losses);
      return 0;
    }
    for (int i = 1; i <= hosts; i++)
      while (ends[i].revents & POLLIN) {
        if (random() % 1000 < loss && read(ends[i].fd, lost, sizeof lost) > 0)
          losses++;
        else if (!take(ends[i].fd, hosts, now_microseconds() + delay + (jitter ? random() % jitter : 0) + 1))
          break;
      }
  }
}
