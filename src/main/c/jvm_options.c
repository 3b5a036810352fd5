/* Where the plugin lies, and what a JVM is started with. */
#define _GNU_SOURCE
#include "jvm_options.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const defaults[] = {
    /* The host's SIGINT, SIGTERM, SIGHUP and SIGQUIT stay the host's. */
    "-Xrs",
    "--enable-native-access=ALL-UNNAMED",
    /* Proxies allocate nothing per step: a small heap and the collector with the fewest threads. */
    "-XX:+UseSerialGC",
    "-Xms16m",
    "-Xmx256m",
    "-Xshare:auto",
    /* No file in /tmp, and no page that a slow disk can hold a safepoint up with. */
    "-XX:-UsePerfData",
    /* What is logged comes out of NCCL's logger. */
    "-Dlog4j.provider=org.millrace.plugin.log.NcclLogProvider",
};

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
  const char *given = getenv("MILLRACE_JAR");
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
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
    millraceAddOption(options, defaults[i], NULL);
  const char *users = getenv("MILLRACE_JAVA_OPTS");
  if (users) {
    char *rest = NULL;
    snprintf(options->users, sizeof options->users, "%s", users);
    for (char *word = strtok_r(options->users, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
      millraceAddOption(options, word, NULL);
  }
  return 0;
}
