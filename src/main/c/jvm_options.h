/* The plugin's location, and the options of its JVM. */
#ifndef MILLRACE_JVM_OPTIONS_H
#define MILLRACE_JVM_OPTIONS_H

#include <jni.h>
#include <stddef.h>

#include "nccl/plugin.h"

#define MILLRACE_MAX_OPTIONS 64

struct millraceOptions {
  JavaVMOption options[MILLRACE_MAX_OPTIONS];
  int count;
  char classPath[8192]; /* -Djava.class.path=... */
  const char *jar;      /* path of the plugin's jar, in classPath */
  char openJar[32];     /* the same jar as /proc/self/fd/N */
  char cache[4200];     /* -XX:AOTCache=... */
  int cacheCopy;        /* descriptor of the cache's copy in memory, -1 if the JVM maps the file */
  char users[4096];     /* MILLRACE_JAVA_OPTS, divided into options */
  char noCollector[32]; /* -XX:-Use... */
  char problem[700];
};

/* Writes the directory from which this library was loaded. Returns null, or the problem. */
const char *millraceLocatePlugin(char *directory, size_t size);

/*
 * Returns the options of every JVM, ending with a null. A cache must be created with the same options, so 'millrace
 * plugin install' also calls this function.
 */
__attribute__((visibility("default"))) const char *const *millraceJavaOptions(void);

/* Adds the class path and the options of every JVM. Returns 0, or -1 with options->problem. */
int millraceJvmOptions(const char *directory, struct millraceOptions *options);

/*
 * Writes the name of a jar's cache, which depends on the jar's content. A JVM does not compare that content with the
 * cache, and would run the classes of another jar. Returns 0, or -1 if the jar cannot be read.
 */
__attribute__((visibility("default"))) int millraceCacheName(const char *jar, char *name, size_t size);

/*
 * Adds the jar's cache if it lies beside the plugin, a Java of this release accepts it, and no variable chooses another
 * archive. A JVM ignores the cache of another Java. The caller closes cacheCopy after the JVM has started.
 */
void millraceAddCache(const char *directory, int release, struct millraceOptions *options);

/* Adds the user's options last, so that they prevail. Returns 0, or -1 with options->problem if they are too long. */
int millraceAddUsersOptions(struct millraceOptions *options);

/* Writes the names of the variables that contain options, for an error message. */
void millraceOptionVariables(char *names, size_t size);

/* Logs the options that a JVM takes directly from its environment. */
void millraceTellOptions(ncclDebugLogger_t logFunction);

void millraceAddOption(struct millraceOptions *options, const char *text, void *extra);

#endif
