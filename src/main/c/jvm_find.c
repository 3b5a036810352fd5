/* Finds a Java runtime. */
#define _GNU_SOURCE
#include "jvm_find.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBJVM "lib/server/libjvm.so"
#define SYSTEM_JVMS "/usr/lib/jvm"

struct search {
  char *library;
  size_t librarySize;
  char *report;
  size_t reportSize;
  int release;
};

__attribute__((format(printf, 2, 3))) static void note(struct search *search, const char *format, ...) {
  size_t used = strlen(search->report);
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  vsnprintf(search->report + used, search->reportSize - used, format, arguments);
  __builtin_va_end(arguments);
}

static const char *separator(const struct search *search) {
  return search->report[0] ? ", " : "";
}

/* Returns the feature release in the file release of a Java's home, or MILLRACE_UNKNOWN_RELEASE. */
static int releaseOf(const char *home) {
  char path[PATH_MAX], line[256];
  snprintf(path, sizeof path, "%s/release", home);
  FILE *file = fopen(path, "re");
  if (!file)
    return MILLRACE_UNKNOWN_RELEASE;
  int release = MILLRACE_UNKNOWN_RELEASE;
  while (release == MILLRACE_UNKNOWN_RELEASE && fgets(line, sizeof line, file)) {
    /* "1.8.0_402" is another name of release 8. The parsed 1 is too old as well. */
    if (sscanf(line, "JAVA_VERSION=\"%d", &release) != 1)
      release = MILLRACE_UNKNOWN_RELEASE;
  }
  fclose(file);
  return release;
}

/* Returns whether a directory is the home of a usable Java. The JVM itself checks an unknown release. */
static int usable(struct search *search, const char *origin, const char *home) {
  char library[PATH_MAX];
  if (snprintf(library, sizeof library, "%s/" LIBJVM, home) >= (int)sizeof library ||
      access(library, R_OK) != 0) {
    note(search, "%s%s (%s: no " LIBJVM " there)", separator(search), origin, home);
    return 0;
  }
  char real[PATH_MAX]; /* the JVM determines its own location by this path */
  if (realpath(library, real) && strchr(real, ':')) {
    note(search, "%s%s (%s: a Java cannot run in a folder with a colon in its path)", separator(search), origin, real);
    return 0;
  }
  int release = releaseOf(home);
  if (release != MILLRACE_UNKNOWN_RELEASE && release < MILLRACE_OLDEST_JAVA) {
    note(search, "%s%s (%s: Java %d)", separator(search), origin, home, release);
    return 0;
  }
  snprintf(search->library, search->librarySize, "%s", library);
  search->release = release;
  return 1;
}

static int findByVariable(struct search *search, const char *variable) {
  const char *home = secure_getenv(variable);
  if (!home || !*home) {
    note(search, "%s%s (not set)", separator(search), variable);
    return 0;
  }
  return usable(search, variable, home);
}

static int findOnPath(struct search *search) {
  const char *path = secure_getenv("PATH");
  char file[PATH_MAX], real[PATH_MAX];
  for (const char *entry = path ? path : ""; *entry;) {
    size_t length = strcspn(entry, ":");
    if (snprintf(file, sizeof file, "%.*s/java", (int)length, entry) < (int)sizeof file &&
        access(file, X_OK) == 0 && realpath(file, real)) {
      /* The path is home/bin/java. If it is a script, home/lib/server does not exist. */
      for (int up = 0; up < 2; up++) {
        char *slash = strrchr(real, '/');
        if (slash)
          *slash = 0;
      }
      return usable(search, "java on the PATH", real);
    }
    entry += length + (entry[length] == ':');
  }
  note(search, "%sPATH (no java)", separator(search));
  return 0;
}

static int findInSystem(struct search *search) {
  DIR *directory = opendir(SYSTEM_JVMS);
  if (!directory) {
    note(search, "%s" SYSTEM_JVMS " (not there)", separator(search));
    return 0;
  }
  char home[PATH_MAX], library[PATH_MAX];
  int newest = MILLRACE_OLDEST_JAVA - 1;
  for (struct dirent *entry; (entry = readdir(directory));) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf(home, sizeof home, SYSTEM_JVMS "/%s", entry->d_name);
    int release = releaseOf(home);
    if (release > newest &&
        snprintf(library, sizeof library, "%s/" LIBJVM, home) < (int)sizeof library &&
        access(library, R_OK) == 0) {
      newest = search->release = release;
      snprintf(search->library, search->librarySize, "%s", library);
    }
  }
  closedir(directory);
  if (newest < MILLRACE_OLDEST_JAVA) {
    note(search, "%s" SYSTEM_JVMS " (none of release %d or newer)", separator(search), MILLRACE_OLDEST_JAVA);
    return 0;
  }
  return 1;
}

static int find(struct search *search, const char *directory) {
  char runtime[PATH_MAX];
  const char *ours = secure_getenv("MILLRACE_JAVA_HOME");
  if (ours && *ours)
    return findByVariable(search, "MILLRACE_JAVA_HOME");
  snprintf(runtime, sizeof runtime, "%s/runtime", directory);
  if (access(runtime, F_OK) == 0 && usable(search, "the runtime beside the plugin", runtime))
    return 1;
  note(search, "%sMILLRACE_JAVA_HOME (not set)", separator(search));
  return findByVariable(search, "JAVA_HOME") || findOnPath(search) || findInSystem(search);
}

int millraceFindJvm(const char *directory, char *library, size_t librarySize, char *report, size_t reportSize,
                    int *release) {
  struct search search = {library, librarySize, report, reportSize, MILLRACE_UNKNOWN_RELEASE};
  report[0] = 0;
  int found = find(&search, directory);
  *release = search.release;
  return found ? 0 : -1;
}
