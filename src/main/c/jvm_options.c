/* Where the plugin lies, and what a JVM is started with. */
#define _GNU_SOURCE
#include "jvm_options.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const defaults[] = {
    /* The host's SIGINT, SIGTERM, SIGHUP and SIGQUIT stay the host's. */
    "-Xrs",
    "--enable-native-access=ALL-UNNAMED",
    /* Proxies allocate nothing per step: a small heap and the collector with the fewest threads. */
    "-XX:+UseSerialGC",
    "-Xms16m",
    "-Xmx256m",
    /* No file in /tmp, and no page that a slow disk can hold a safepoint up with. */
    "-XX:-UsePerfData",
    /* The JDK writes classes with these while the plugin starts, and never again: to compile them takes C2 a quarter of
     * a second, for which what moves data would wait. */
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=exclude,jdk.internal.classfile.impl.*::*",
    /* The JDK's selector makes an Integer of the descriptor of each stream that it finds ready: these exist already. */
    "-Djava.lang.Integer.IntegerCache.high=4095",
    /* What is logged comes out of NCCL's logger. */
    "-Dlog4j.provider=org.millrace.plugin.log.NcclLogProvider",
    NULL,
};

#define USERS_OPTIONS "MILLRACE_JAVA_OPTS"
#define CACHE "-XX:AOTCache="
/* The first release whose JVM takes -XX:AOTCache with profiles of methods; an older one refuses to start. */
#define OLDEST_JAVA_WITH_CACHE 25

/* What is looked at of a jar, from its end: there lies its directory, with the checksum of every file in it. */
#define STAMP_BYTES (1 << 20)

/* FNV-1a, by words; what is left of a word at the end is of no matter. */
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

/* Notes what is wrong; returns -1. */
__attribute__((format(printf, 2, 3))) static int refuse(struct millraceOptions *options, const char *format,
                                                        ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(options->problem, sizeof options->problem, format, arguments);
  va_end(arguments);
  return -1;
}

#define CLASS_PATH "-Djava.class.path="

static int setClassPath(const char *directory, struct millraceOptions *options) {
  const char *given = secure_getenv("MILLRACE_JAR");
  char jar[PATH_MAX];
  if (!given || !*given) {
    if (snprintf(jar, sizeof jar, "%s/millrace.jar", directory) >= (int)sizeof jar || access(jar, R_OK) != 0)
      return refuse(options, "there is no %s; put one there with 'millrace plugin install', or set MILLRACE_JAR "
                             "to one", jar);
    given = jar;
  } else {
    /* A class path is taken, too; its first part stands for all. */
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

int millraceJvmOptions(const char *directory, struct millraceOptions *options) {
  if (setClassPath(directory, options) != 0)
    return -1;
  millraceAddOption(options, options->classPath, NULL);
  for (size_t i = 0; defaults[i]; i++)
    millraceAddOption(options, defaults[i], NULL);
  return 0;
}

/* Whether the user has a say in archives: the JVM takes no second one, and ends over some pairs. */
static int usersChooseArchive(void) {
  const char *users = secure_getenv(USERS_OPTIONS);
  return users && (strstr(users, "AOT") || strstr(users, "-Xshare") || strstr(users, "Archive"));
}

void millraceAddCache(const char *directory, int release, struct millraceOptions *options) {
  const char *jar = secure_getenv("MILLRACE_JAR");
  if (release < OLDEST_JAVA_WITH_CACHE || (jar && *jar) || usersChooseArchive())
    return;
  char name[64];
  if (millraceCacheName(options->jar, name, sizeof name) != 0 ||
      snprintf(options->cache, sizeof options->cache, CACHE "%s/%s", directory, name) >=
          (int)sizeof options->cache ||
      access(options->cache + strlen(CACHE), R_OK) != 0)
    return;
  millraceAddOption(options, options->cache, NULL);
  /* One that does not fit is no one's concern: what it was to spare is done, and nothing else differs. */
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
