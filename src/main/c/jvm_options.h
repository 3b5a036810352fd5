/* Where the plugin lies, and what a JVM is started with. */
#ifndef MILLRACE_JVM_OPTIONS_H
#define MILLRACE_JVM_OPTIONS_H

#include <jni.h>
#include <stddef.h>

#define MILLRACE_MAX_OPTIONS 64

struct millraceOptions {
  JavaVMOption options[MILLRACE_MAX_OPTIONS];
  int count;
  char classPath[8192]; /* -Djava.class.path=... */
  const char *jar;      /* the path in it */
  char users[4096];     /* MILLRACE_JAVA_OPTS, taken apart */
  char problem[700];
};

/* Puts the directory that this library was loaded from there; returns null, or what is wrong. */
const char *millraceLocatePlugin(char *directory, size_t size);

/* Adds to the options; returns 0, or -1 with options->problem. */
int millraceJvmOptions(const char *directory, struct millraceOptions *options);

void millraceAddOption(struct millraceOptions *options, const char *text, void *extra);

#endif
