/* Where the plugin lies, and what a JVM is started with. */
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
  const char *jar;      /* the path in it */
  char openJar[32];     /* another name of the jar */
  char cache[4200];     /* -XX:AOTCache=... */
  int cacheCopy;        /* descriptor of the cache's copy in memory, -1 if the JVM maps the file */
  char users[4096];     /* MILLRACE_JAVA_OPTS, taken apart */
  char noCollector[32]; /* -XX:-Use... */
  char problem[700];
};

/* Puts the directory that this library was loaded from there; returns null, or what is wrong. */
const char *millraceLocatePlugin(char *directory, size_t size);

/* What every JVM is started with, and what a cache is made with ('millrace plugin install' calls this): they
 * must not differ. Ends with a null. */
__attribute__((visibility("default"))) const char *const *millraceJavaOptions(void);

/* Adds the class path and the options that every JVM is started with; returns 0, or -1 with options->problem. */
int millraceJvmOptions(const char *directory, struct millraceOptions *options);

/* Puts the name of a jar's cache there, which tells jars apart by what they contain: a JVM does not, and would run
 * another jar's classes. Returns 0, or -1 if the jar cannot be read. */
__attribute__((visibility("default"))) int millraceCacheName(const char *jar, char *name, size_t size);

/* Adds the jar's cache if it lies beside the plugin, a Java of this release takes one, and no variable chooses another
 * archive. A JVM ignores the cache of another Java. The caller closes cacheCopy after the JVM has started. */
void millraceAddCache(const char *directory, int release, struct millraceOptions *options);

/* Adds what the user wants: last, so that it prevails. Returns 0, or -1 with options->problem if that is too much. */
int millraceAddUsersOptions(struct millraceOptions *options);

/* Puts the names of the variables there that have options, for a message of what to look at. */
void millraceOptionVariables(char *names, size_t size);

/* Logs the options that a JVM takes from its environment by itself. */
void millraceTellOptions(ncclDebugLogger_t logFunction);

void millraceAddOption(struct millraceOptions *options, const char *text, void *extra);

#endif
