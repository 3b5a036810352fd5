/* Says which threads the plugin has, with policy and niceness, when it has started and when two ranks of this process are
 * connected; bound to one core or not: usage LIBRARY one|all. */
#define _GNU_SOURCE
#include "communicator.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

static void print_threads(const char *when) {
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *entry = readdir(threads); entry; entry = readdir(threads)) {
    char path[300], name[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
      printf("%s %d %d %s", when, sched_getscheduler(atoi(entry->d_name)),
             getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name)), name);
    if (file)
      fclose(file);
  }
  closedir(threads);
}

static void connect_and_print(struct rank *rank) {
  struct buffer_sizes sizes = buffer_sizes(0);
  if (rank->number == 0)
    print_threads("STARTED");
  set_up(rank, &sizes);
  if (rank->number == 0)
    print_threads("CONNECTED");
  meet(rank);
  tear_down(rank);
}

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
  two_threads(arguments[1], 1, connect_and_print);
  return 0;
}
