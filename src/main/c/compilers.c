/* Limits the cores that the JVM's compilers use, so that they do not delay the threads that move data. */
#define _GNU_SOURCE
#include "compilers.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Lowest priority of threads that share a core, above SCHED_IDLE. */
#define LEAST_NICE 19
#define FEW_CORES 4
/* Minimum number of cores at which compilers have cores for themselves. */
#define MANY_CORES 8

/* Reads a small file. Returns whether it contained data. */
static int slurp(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0)
    close(file);
  text[length > 0 ? length : 0] = 0;
  return length > 0;
}

/*
 * Returns the number of cores that the quota in a control group's directory permits, rounded up; INT_MAX without a
 * quota.
 */
static int quota_of(const char *directory) {
  char path[PATH_MAX], text[64];
  long quota = -1, period = 0;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (slurp(path, text, sizeof text))
    return sscanf(text, "%ld %ld", &quota, &period) == 2 && period > 0 ? (int)((quota + period - 1) / period) : INT_MAX;
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
  if (slurp(path, text, sizeof text))
    quota = strtol(text, NULL, 10);
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
  if (slurp(path, text, sizeof text))
    period = strtol(text, NULL, 10);
  return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : INT_MAX;
}

/*
 * Returns the number of cores that the quota of the process's control group permits, for version 2 or 1 of control
 * groups. In a container, the root directory of control groups is the container's own group.
 */
static int quota(void) {
  char text[4096], directory[PATH_MAX], *rest = NULL;
  int least = quota_of("/sys/fs/cgroup"), here;
  if (!slurp("/proc/self/cgroup", text, sizeof text))
    return least;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path || (strncmp(controllers, "::", 2) != 0 && !strstr(controllers, "cpu,") && !strstr(controllers, ":cpu:")))
      continue;
    snprintf(directory, sizeof directory, "/sys/fs/cgroup%s%s", controllers[1] == ':' ? "" : "/cpu", path + 1);
    here = quota_of(directory);
    least = here < least ? here : least;
  }
  return least;
}

static int cores(void) {
  cpu_set_t set;
  int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : INT_MAX;
  int limit = quota();
  return limit < allowed ? limit : allowed;
}

/*
 * Returns whether data is encrypted. C1 does not use the processor's AES-GCM instructions. Without C2 a core encrypts
 * only a few megabytes a second.
 */
static int encrypts(void) {
  const char *tls = secure_getenv("MILLRACE_TLS");
  return tls != NULL && strcmp(tls, "0") != 0 && strcmp(tls, "") != 0;
}

void millraceAddCompilerOptions(struct millraceOptions *options) {
  int usable = cores();
  if (usable < FEW_CORES && !encrypts()) {
    /*
     * C2's code is only a little faster than C1's, and C2 needs seconds to compile. Meanwhile C2 would delay the
     * threads that move data.
     */
    millraceAddOption(options, "-XX:TieredStopAtLevel=1", NULL);
    return;
  }
  /* Creates all compiler threads at the start, because their priority is lowered only once. */
  millraceAddOption(options, "-XX:-UseDynamicNumberOfCompilerThreads", NULL);
  if (usable < MANY_CORES)
    millraceAddOption(options, "-XX:CICompilerCount=3", NULL);
}

/*
 * Linux treats a core that runs only SCHED_IDLE threads as free for other threads. On a core with a polling thread,
 * however, a SCHED_IDLE thread may not run for seconds. If its process is killed, the thread cannot exit, the sockets
 * stay open, and peers do not learn of the death. SCHED_IDLE is therefore not used with few cores, because threads may
 * poll on all of them.
 */
void millraceLowerCompilers(void) {
  int idle = cores() >= FEW_CORES;
  DIR *threads = encrypts() ? NULL : opendir("/proc/self/task");
  char path[64], name[64];
  for (struct dirent *entry = threads ? readdir(threads) : NULL; entry; entry = readdir(threads)) {
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", entry->d_name);
    if (entry->d_name[0] == '.' || !slurp(path, name, sizeof name) || strncmp(name, "C2 Comp", 7) != 0)
      continue;
    id_t thread = (id_t)strtol(entry->d_name, NULL, 10);
    const struct sched_param none = {0};
    /* If Linux refuses one of the following calls, the priority stays unchanged. */
    if (idle) {
      sched_setscheduler((pid_t)thread, SCHED_IDLE, &none);
    } else {
      /* a batch thread that wakes does not preempt the running thread */
      sched_setscheduler((pid_t)thread, SCHED_BATCH, &none);
      setpriority(PRIO_PROCESS, thread, LEAST_NICE); /* on Linux, this sets the priority of one thread */
    }
  }
  if (threads)
    closedir(threads);
}
