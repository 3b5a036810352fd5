/*
 * Starts the plugin, with or without a binding to one core, and prints all threads with policy and niceness. Usage:
 * LIBRARY one|all.
 */
#define _GNU_SOURCE
#define NET_VERSION 11
#include "versions.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

int main(int count, char **arguments) {
  REQUIRE(count == 3, "usage: LIBRARY one|all");
  if (strcmp(arguments[2], "one") == 0) {
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; core++)
      if (CPU_ISSET(core, &all))
        CPU_SET(core, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0, "affinity");
  }
  const net_t *net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  void *ctx = NULL;
  SUCCEEDS(net_init(net, &ctx));
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *entry = readdir(threads); entry; entry = readdir(threads)) {
    char path[300], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
      printf("THREAD %d %d %s", sched_getscheduler(atoi(entry->d_name)), getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name)),
             name);
    if (file)
      fclose(file);
  }
  closedir(threads);
  SUCCEEDS(net->finalize(ctx));
  return 0;
}
