/*
 * Clients without the secret: connections to ports of this host, only at 127.0.0.1. Usage: silent|hello|half=TEXT COUNT
 * RATE SECONDS PORT...
 * - silent: COUNT connections to each port stay open and send nothing. Closed ones are replaced, at most 300 a second.
 * - half=TEXT: the same, and each sends TEXT.
 * - hello: each sends a ClientHello of TLS, and closes when the server closes it, or after a second.
 *
 * RATE is the maximum number of connections a second for all ports together. The program ends after SECONDS or on
 * SIGTERM. It prints the number of created connections, and the maximum number of open ones.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_PORTS 64
#define MOST_DESCRIPTORS 65536
#define MOST_CONNECTIONS 16384
#define MOST_RATE 20000
#define MOST_SECONDS 120
#define ANEW 300
#define EVENTS 512
#define HELLO_NANOSECONDS 1000000000L

static unsigned char hello[] = {
    0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3, /* record; handshake; version; 32 random bytes, and 32 bytes of a session: */
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31, 0, 4, 0x13, 1, 0x13, 2, 1, 0, 0, 71, /* suites; no compression; extensions: versions, groups, signatures, key */
    0, 43, 0, 3, 2, 3, 4, 0, 10, 0, 4, 0, 2, 0, 29, 0, 13, 0, 10, 0, 8, 8, 7, 4, 3, 8, 4, 4, 1, 0, 51, 0, 38, 0, 36, 0, 29,
    0, 32, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31};

static struct {
  int port;
  int said;
  long since;
} connections[MOST_DESCRIPTORS];
static int standing[MOST_PORTS];

static volatile sig_atomic_t ended;

static void end_now(int signal) {
  (void)signal;
  ended = 1;
}

static long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static long bounded(const char *text, long most) {
  long number = atol(text);
  if (number < 1 || number > most) {
    fprintf(stderr, "%s: 1 to %ld\n", text, most);
    exit(2);
  }
  return number;
}

static void finish(int fd) {
  close(fd);
  connections[fd].since = 0;
  standing[connections[fd].port]--;
}

int main(int count, char **arguments) {
  if (count < 6 || count - 5 > MOST_PORTS) {
    fprintf(stderr, "usage: silent|hello|half=TEXT COUNT RATE SECONDS PORT...\n");
    return 2;
  }
  int isHello = !strcmp(arguments[1], "hello"), ports = count - 5;
  const char *words = isHello ? (char *)hello : !strncmp(arguments[1], "half=", 5) ? arguments[1] + 5 : "";
  size_t length = isHello ? sizeof hello : strlen(words);
  hello[3] = (sizeof hello - 5) >> 8, hello[4] = (sizeof hello - 5) & 255;
  hello[7] = (sizeof hello - 9) >> 8, hello[8] = (sizeof hello - 9) & 255;
  long most = bounded(arguments[2], MOST_CONNECTIONS), rate = bounded(arguments[3], MOST_RATE);
  long made = 0, stood = 0, look = 0;
  long begin = nanoseconds(), end = begin + bounded(arguments[4], MOST_SECONDS) * 1000000000L;
  struct rlimit files = {MOST_DESCRIPTORS, MOST_DESCRIPTORS};
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  signal(SIGTERM, end_now);
  signal(SIGPIPE, SIG_IGN);
  int poll = epoll_create1(0), next = 0;
  struct epoll_event events[EVENTS];
  for (long now = begin; now < end && !ended; now = nanoseconds()) {
    if (!isHello && rate > ANEW && made >= most * ports) {
      rate = ANEW;
      begin = now - made * 1000000000L / rate;
    }
    long due = (now - begin) / 1000 * rate / 1000000, skipped = 0;
    if (made < due - rate) /* the program was delayed: missed connections are not made up for */
      begin += (due - rate - made) * 1000000000L / rate;
    for (int opened = 0; made < due && skipped < ports && opened < EVENTS; next = (next + 1) % ports) {
      if (!isHello && standing[next] >= most) {
        skipped++;
        continue;
      }
      int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0 || fd >= MOST_DESCRIPTORS) {
        if (fd >= 0)
          close(fd);
        break;
      }
      struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[5 + next])),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
      connect(fd, (struct sockaddr *)&to, sizeof to);
      connections[fd].port = next;
      connections[fd].said = 0;
      connections[fd].since = now;
      standing[next]++;
      struct epoll_event event = {.events = EPOLLOUT | EPOLLIN | EPOLLRDHUP, .data.fd = fd};
      epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
      made++, opened++, skipped = 0;
    }
    if (skipped == ports && due - made > 0)
      begin = now - made * 1000000000L / rate;
    int ready = epoll_wait(poll, events, EVENTS, 1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (events[i].events & EPOLLOUT && !connections[fd].said) {
        connections[fd].said = 1;
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
        epoll_ctl(poll, EPOLL_CTL_MOD, fd, &event);
        if (length && write(fd, words, length) < 0)
          events[i].events |= EPOLLHUP;
      }
      char answer[4096];
      if (events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP) ||
          (events[i].events & EPOLLIN && read(fd, answer, sizeof answer) <= 0))
        finish(fd);
    }
    long all = 0;
    for (int port = 0; port < ports; port++)
      all += standing[port];
    stood = all > stood ? all : stood;
    for (int fd = 0; isHello && now > look && fd < MOST_DESCRIPTORS; fd++)
      if (connections[fd].since && now - connections[fd].since > HELLO_NANOSECONDS)
        finish(fd);
    look = now > look ? now + HELLO_NANOSECONDS / 10 : look;
  }
  printf("made %ld, stood %ld\n", made, stood);
  return 0;
}
