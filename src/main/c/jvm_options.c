/* The plugin's location, and the options of its JVM. */
#define _GNU_SOURCE
#include "jvm_options.h"
#include "shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define COLLECTOR "-XX:+UseSerialGC"

static const char *const defaults[] = {
    /* The host keeps its SIGINT, SIGTERM, SIGHUP and SIGQUIT. */
    "-Xrs",
    "--enable-native-access=ALL-UNNAMED",
    /* Proxies allocate nothing per step. A small heap and the collector with the fewest threads suffice. */
    COLLECTOR,
    "-Xms16m",
    "-Xmx256m",
    /* Avoids a file in /tmp, and a page that delays a safepoint on a slow disk. */
    "-XX:-UsePerfData",
    /*
     * The JDK writes classes only while the plugin starts. C2 would compile the methods of that code for a quarter of a
     * second, and delay the threads that move data. The following options exclude these methods.
     */
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=exclude,jdk.internal.classfile.impl.*::*",
    /*
     * For each ready stream, the JDK's selector creates an Integer with the descriptor. A cached Integer avoids the
     * allocation.
     */
    "-Djava.lang.Integer.IntegerCache.high=4095",
    /* Log lines pass through NCCL's logger. */
    "-Dlog4j.provider=org.millrace.plugin.host.NcclLogProvider",
    NULL,
};

#define USERS_OPTIONS "MILLRACE_JAVA_OPTS"
/* Variables that the JVM reads itself: FIRST_OPTIONS before the given options, LAST_OPTIONS after them. */
#define FIRST_OPTIONS "JAVA_TOOL_OPTIONS"
#define LAST_OPTIONS "_JAVA_OPTIONS"
#define CACHE "-XX:AOTCache="
/* First release with a JVM that accepts -XX:AOTCache with method profiles. An older JVM refuses to start. */
#define OLDEST_JAVA_WITH_CACHE 25

/*
 * Number of bytes at the end of a jar that are hashed. They contain the jar's directory, with a checksum of every
 * file.
 */
#define STAMP_BYTES (1 << 20)

/* FNV-1a, by words. An incomplete word at the end is ignored. */
static uint64_t hash(uint64_t from, const uint64_t *words, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof *words; i++) {
    from = (from ^ words[i]) * 0x100000001B3u;
    from ^= from >> 29;
  }
  return from;
}

int millraceCacheName(const char *jar, char *name, size_t size) {
  int file = open(jar, O_RDONLY | O_CLOEXEC);
  struct stat status;
  uint64_t *tail = malloc(STAMP_BYTES);
  ssize_t bytes = -1;
  if (file >= 0 && tail && fstat(file, &status) == 0)
    bytes = pread(file, tail, STAMP_BYTES, status.st_size > STAMP_BYTES ? status.st_size - STAMP_BYTES : 0);
  if (bytes >= 0)
    snprintf(name, size, "millrace-%016" PRIx64 ".aot", hash((uint64_t)status.st_size, tail, (size_t)bytes));
  free(tail);
  if (file >= 0)
    close(file);
  return bytes < 0 ? -1 : 0;
}

const char *const *millraceJavaOptions(void) {
  return defaults;
}

const char *millraceLocatePlugin(char *directory, size_t size) {
  Dl_info info;
  char path[PATH_MAX];
  if (!dladdr((void *)millraceLocatePlugin, &info) || !realpath(info.dli_fname, path))
    return "cannot tell where the plugin was loaded from; give NCCL_NET_PLUGIN as a path";
  *strrchr(path, '/') = 0;
  snprintf(directory, size, "%s", path);
  return NULL;
}

void millraceAddOption(struct millraceOptions *options, const char *text, void *extra) {
  if (options->count < MILLRACE_MAX_OPTIONS) {
    options->options[options->count].optionString = (char *)text;
    options->options[options->count].extraInfo = extra;
    options->count++;
  }
}

/* Stores the problem. Returns -1. */
__attribute__((format(printf, 2, 3))) static int refuse(struct millraceOptions *options, const char *format,
                                                        ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(options->problem, sizeof options->problem, format, arguments);
  va_end(arguments);
  return -1;
}

#define CLASS_PATH "-Djava.class.path="

/*
 * Returns a name of the jar without a colon, because a colon separates the parts of a class path; null on failure. The
 * file stays open, because the JVM opens it by that name.
 */
static const char *withoutColon(struct millraceOptions *options, const char *jar) {
  int file = open(jar, O_RDONLY | O_CLOEXEC);
  snprintf(options->openJar, sizeof options->openJar, "/proc/self/fd/%d", file);
  return file >= 0 && access(options->openJar, R_OK) == 0 ? options->openJar : NULL;
}

static int setClassPath(const char *directory, struct millraceOptions *options) {
  const char *given = secure_getenv("MILLRACE_JAR");
  char jar[PATH_MAX];
  if (!given || !*given) {
    if (snprintf(jar, sizeof jar, "%s/millrace.jar", directory) >= (int)sizeof jar || access(jar, R_OK) != 0)
      return refuse(options, "there is no %s; put one there with 'millrace plugin install', or set MILLRACE_JAR "
                             "to one", jar);
    given = strchr(jar, ':') ? withoutColon(options, jar) : jar;
    if (!given)
      return refuse(options, "%s cannot be a part of a class path, for its colon: choose another folder, or mount /proc",
                    jar);
  } else {
    /* The value may also be a class path. Only the first part of a class path is checked. */
    snprintf(jar, sizeof jar, "%.*s", (int)strcspn(given, ":"), given);
    if (access(jar, R_OK) != 0)
      return refuse(options, "there is no %s, which MILLRACE_JAR names; set it to a millrace.jar", jar);
  }
  if (snprintf(options->classPath, sizeof options->classPath, CLASS_PATH "%s", given) >=
      (int)sizeof options->classPath)
    return refuse(options, "MILLRACE_JAR is longer than %zu bytes", sizeof options->classPath);
  options->jar = options->classPath + strlen(CLASS_PATH);
  return 0;
}

/* Returns the value of a variable; empty if it is not set. */
static const char *optionsIn(const char *variable) {
  const char *given = secure_getenv(variable);
  return given ? given : "";
}

/* Returns the name of the collector that options choose; null for none. A JVM with two collectors terminates. */
static const char *collectorIn(const char *given) {
  static const char *const collectors[] = {"SerialGC", "ParallelGC", "G1GC", "ZGC", "ShenandoahGC", "EpsilonGC"};
  char option[32];
  for (size_t i = 0; i < sizeof collectors / sizeof *collectors; i++) {
    snprintf(option, sizeof option, "-XX:+Use%s", collectors[i]);
    if (strstr(given, option))
      return collectors[i];
  }
  return NULL;
}

/*
 * Chooses the plugin's collector only if no other option chooses a collector. If several variables choose collectors,
 * the plugin's own variable prevails.
 */
static void addCollector(struct millraceOptions *options) {
  const char *first = collectorIn(optionsIn(FIRST_OPTIONS)), *last = collectorIn(optionsIn(LAST_OPTIONS));
  if (!collectorIn(optionsIn(USERS_OPTIONS))) {
    if (!first && !last)
      millraceAddOption(options, COLLECTOR, NULL);
  } else if (first) {
    snprintf(options->noCollector, sizeof options->noCollector, "-XX:-Use%s", first);
    millraceAddOption(options, options->noCollector, NULL);
  }
}

int millraceJvmOptions(const char *directory, struct millraceOptions *options) {
  if (setClassPath(directory, options) != 0)
    return -1;
  millraceAddOption(options, options->classPath, NULL);
  for (size_t i = 0; defaults[i]; i++)
    if (strcmp(defaults[i], COLLECTOR) != 0)
      millraceAddOption(options, defaults[i], NULL);
  addCollector(options);
  return 0;
}

void millraceOptionVariables(char *names, size_t size) {
  int first = *optionsIn(FIRST_OPTIONS) != 0, last = *optionsIn(LAST_OPTIONS) != 0;
  snprintf(names, size, USERS_OPTIONS "%s%s%s", first ? last ? ", " : " and " : "", first ? FIRST_OPTIONS : "",
           last ? " and " LAST_OPTIONS : "");
}

void millraceTellOptions(ncclDebugLogger_t logFunction) {
  static const char *const variables[] = {FIRST_OPTIONS, LAST_OPTIONS};
  char line[500];
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (*optionsIn(variables[i])) {
      snprintf(line, sizeof line, "the JVM is started with %s=%.400s, too", variables[i], optionsIn(variables[i]));
      millraceLog(logFunction, NCCL_LOG_INFO, line);
    }
}

/*
 * Returns whether the user's options or the environment's concern class archives. The JVM accepts only one archive, and
 * some pairs of archives terminate it.
 */
static int othersChooseArchive(void) {
  static const char *const variables[] = {USERS_OPTIONS, FIRST_OPTIONS, LAST_OPTIONS};
  static const char *const words[] = {"AOT", "-Xshare", "Archive"};
  for (size_t i = 0; i < 3; i++)
    for (size_t k = 0; k < 3; k++)
      if (strstr(optionsIn(variables[i]), words[k]))
        return 1;
  return 0;
}

/*
 * Returns whether a file is on a local file system. On a network file system another machine can truncate or delete the
 * file, and a process that has mapped it then dies of SIGBUS. StartupCache has the same list of local file systems.
 */
static int isLocal(int file) {
  static const unsigned int types[] = {
      EXT4_SUPER_MAGIC,   XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC,   RAMFS_MAGIC,
      OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, SQUASHFS_MAGIC, 0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */,
  };
  struct statfs status;
  if (fstatfs(file, &status) != 0)
    return 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if ((unsigned int)status.f_type == types[i])
      return 1;
  return 0;
}

/* Copies a file into memory. Returns the descriptor of the copy, or -1. */
static int copyToMemory(int file) {
  struct stat status;
  off_t copied = 0;
  int copy = fstat(file, &status) == 0 ? memfd_create("millrace.aot", MFD_CLOEXEC) : -1;
  while (copy >= 0 && copied < status.st_size)
    if (sendfile(copy, file, &copied, (size_t)(status.st_size - copied)) <= 0) {
      close(copy);
      copy = -1;
    }
  return copy;
}

/*
 * Stores the option for the cache, with a path that the JVM can map safely. Returns 0, or -1 if there is no such path.
 */
static int locateCache(const char *directory, struct millraceOptions *options) {
  char name[64], path[PATH_MAX];
  if (millraceCacheName(options->jar, name, sizeof name) != 0 ||
      snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
    return -1;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return -1;
  if (!isLocal(file)) {
    options->cacheCopy = copyToMemory(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", options->cacheCopy);
  }
  close(file);
  snprintf(options->cache, sizeof options->cache, CACHE "%s", path);
  return access(path, R_OK);
}

void millraceAddCache(const char *directory, int release, struct millraceOptions *options) {
  const char *jar = secure_getenv("MILLRACE_JAR");
  options->cacheCopy = -1;
  if (release < OLDEST_JAVA_WITH_CACHE || (jar && *jar) || othersChooseArchive())
    return;
  if (locateCache(directory, options) != 0)
    return;
  millraceAddOption(options, options->cache, NULL);
  /* A cache that does not match is not reported, because only the start becomes slower. */
  millraceAddOption(options, "-Xlog:aot*=off", NULL);
  millraceAddOption(options, "-Dorg.millrace.cache=given", NULL);
}

#define PUT_INTO_A_FILE "put options into a file, and name it with -XX:VMOptionsFile=FILE"

int millraceAddUsersOptions(struct millraceOptions *options) {
  const char *users = secure_getenv(USERS_OPTIONS);
  char *rest = NULL;
  int room = MILLRACE_MAX_OPTIONS - options->count, words = 0;
  if (!users)
    return 0;
  if (strlen(users) >= sizeof options->users)
    return refuse(options, USERS_OPTIONS " has %zu bytes, and at most %zu can be taken: " PUT_INTO_A_FILE,
                  strlen(users), sizeof options->users - 1);
  snprintf(options->users, sizeof options->users, "%s", users);
  for (char *word = strtok_r(options->users, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
    if (words++ < room)
      millraceAddOption(options, word, NULL);
  return words <= room ? 0
                       : refuse(options, USERS_OPTIONS " has %d options, and at most %d can be taken: " PUT_INTO_A_FILE,
                                words, room);
}
