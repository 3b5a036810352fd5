/*
 * Deletes files in shared memory that would otherwise remain. The first kind are open files of this process: Java
 * cannot close them if C code ends the process, because the JVM does not observe such an exit. The second kind are
 * files of dead processes. Each file name contains its owner; see org.millrace.file.FileName.
 */
#define _GNU_SOURCE
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/dev/shm"

struct process {
  long pid, start, namespace;
};

/*
 * Reads the state, the number of threads and the start time of a process from /proc. Returns 0 if no such process
 * exists, and a negative number if that is unknown.
 */
static int look(long pid, char *state, long *threads, long *start) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "re");
  if (!file)
    return errno == ENOENT ? 0 : -1;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char *name = strrchr(text, ')');
  return name && sscanf(name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %ld",
                        state, threads, start) == 3 ? 1 : -1;
}

static int find_self(struct process *self) {
  char state, link[64];
  long threads;
  self->pid = getpid();
  ssize_t length = readlink("/proc/self", link, sizeof link - 1);
  /* There is no /proc, or it belongs to another PID namespace. */
  if (length <= 0 || (link[length] = 0, atol(link)) != self->pid)
    return 0;
  length = readlink("/proc/self/ns/pid", link, sizeof link - 1);
  if (length <= 0 || look(self->pid, &state, &threads, &self->start) != 1)
    return 0;
  link[length] = 0;
  return sscanf(link, "pid:[%ld]", &self->namespace) == 1;
}

/*
 * /proc may hide processes of other users (hidepid). The kernel still reports whether a process with this number
 * exists.
 */
static int is_dead(const struct process *process) {
  char state;
  long threads, start;
  int found = look(process->pid, &state, &threads, &start);
  return (found == 0 && kill((pid_t)process->pid, 0) && errno == ESRCH) ||
         (found == 1 && (start != process->start || (strchr("ZX", state) && threads <= 1)));
}

/*
 * Returns whether a file name is one of Millrace's. Reads the owner from it, and whether the file is a trace. Traces of
 * failures are kept for analysis, and Java deletes them later.
 */
static int read_name(const char *name, struct process *owner, int *trace) {
  char kind[8];
  int end = 0;
  if (sscanf(name, "millrace-%*16[0-9a-f]-%18ld-%18ld-%18ld.%5[a-z]%n", &owner->pid, &owner->start, &owner->namespace,
             kind, &end) != 4 || name[end] != 0)
    return 0;
  *trace = !strcmp(kind, "trace");
  return *trace || !strcmp(kind, "sock") || !strcmp(kind, "ring") || !strcmp(kind, "mem");
}

/*
 * Returns whether a trace contains no open connection and no failure: org.millrace.trace.TraceLayout, OPEN_OFFSET and
 * FAILED_OFFSET.
 */
static int is_uneventful(int directory, const char *name) {
  int open_and_failed[2] = {1, 1};
  int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t length = pread(file, open_and_failed, sizeof open_and_failed, 80);
  close(file);
  return length == sizeof open_and_failed && open_and_failed[0] == 0 && open_and_failed[1] == 0;
}

/* A forked child of the host has another process number, so it does not delete its parent's files when it exits. */
static void delete_leftovers(void) {
  struct process self, owner;
  DIR *directory = find_self(&self) ? opendir(DIRECTORY) : NULL;
  struct dirent *entry;
  while (directory && (entry = readdir(directory))) {
    struct stat file;
    int trace;
    if (!read_name(entry->d_name, &owner, &trace) || owner.namespace != self.namespace)
      continue;
    int own = owner.pid == self.pid && owner.start == self.start;
    /* Any user may have created a file with such a name. If it is a pipe, a blocking open would wait for a writer. */
    if (fstatat(dirfd(directory), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0 || file.st_uid != geteuid() ||
        !(S_ISREG(file.st_mode) || S_ISSOCK(file.st_mode)))
      continue;
    if (trace && !(own && is_uneventful(dirfd(directory), entry->d_name)))
      continue;
    if (own || is_dead(&owner))
      unlinkat(dirfd(directory), entry->d_name, 0);
  }
  if (directory)
    closedir(directory);
}

void millraceDeleteLeftoversAtExit(void) {
  atexit(delete_leftovers);
}
