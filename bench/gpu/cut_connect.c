/*
 * Library that cuts.sh preloads. Connections to the address CUT_ADDRESS are made through the forwarder that listens at
 * the path CUT_FORWARDER. The library sends the port to the forwarder, which answers with its own port for it. All
 * other connections are unchanged.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int (*connect_function)(int, const struct sockaddr *, socklen_t);

static int forwarded(connect_function next, int port) {
  struct sockaddr_un path = {.sun_family = AF_UNIX};
  char text[16] = {0};
  int through = 0, asking = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(path.sun_path, sizeof path.sun_path, "%s", getenv("CUT_FORWARDER"));
  snprintf(text, sizeof text, "%d\n", port);
  if (next(asking, (struct sockaddr *)&path, sizeof path) == 0 && write(asking, text, strlen(text)) > 0 &&
      read(asking, text, sizeof text - 1) > 0)
    through = atoi(text);
  close(asking);
  if (!through) {
    fprintf(stderr, "cut_connect: no forwarder at %s\n", path.sun_path);
    abort();
  }
  return through;
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
  connect_function next = (connect_function)dlsym(RTLD_NEXT, "connect");
  struct sockaddr_storage changed;
  struct in_addr cut;
  const char *address = getenv("CUT_ADDRESS");
  if (!address || length > sizeof changed || inet_pton(AF_INET, address, &cut) != 1)
    return next(socket, to, length);
  memcpy(&changed, to, length);
  if (to->sa_family == AF_INET) {
    struct sockaddr_in *in = (struct sockaddr_in *)&changed;
    if (in->sin_addr.s_addr == cut.s_addr)
      in->sin_port = htons((uint16_t)forwarded(next, ntohs(in->sin_port)));
  } else if (to->sa_family == AF_INET6) {
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)&changed;
    if (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) && memcmp(&in->sin6_addr.s6_addr[12], &cut, sizeof cut) == 0)
      in->sin6_port = htons((uint16_t)forwarded(next, ntohs(in->sin6_port)));
  }
  return next(socket, (struct sockaddr *)&changed, length);
}
