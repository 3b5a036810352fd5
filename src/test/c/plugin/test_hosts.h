/* Hosts in network namespaces. */
#ifndef MILLRACE_TEST_HOSTS_H
#define MILLRACE_TEST_HOSTS_H

#include "host.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

/*
 * Moves a rank to its host. The environment variable TEST_HOSTS names a process for each rank. The rank takes over the
 * network, the shared files and the host name of that process. Call this before the process has a second thread.
 */
static inline void move_to_host(int self) {
  static const char *const namespaces[] = {"net", "uts", "mnt"};
  const char *hosts = getenv("TEST_HOSTS");
  int ends[3];
  char path[64], here[4096];
  if (!hosts)
    return;
  for (int i = 0; i < self; i++)
    hosts += strcspn(hosts, ",") + 1;
  REQUIRE(getcwd(here, sizeof here), "no directory");
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "/proc/%ld/ns/%s", atol(hosts), namespaces[i]);
    ends[i] = open(path, O_RDONLY);
    REQUIRE(ends[i] >= 0, "no %s", path);
  }
  for (int i = 0; i < 3; i++) {
    REQUIRE(setns(ends[i], 0) == 0, "cannot enter %s of %ld", namespaces[i], atol(hosts));
    close(ends[i]);
  }
  REQUIRE(chdir(here) == 0, "no %s there", here);
}

#endif
