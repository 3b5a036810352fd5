/* Finds a Java runtime. */
#ifndef MILLRACE_JVM_FIND_H
#define MILLRACE_JVM_FIND_H

#include <stddef.h>

/* Oldest release with the foreign function interface that the jar needs. */
#define MILLRACE_OLDEST_JAVA 22
/* Release of a Java that does not report it. */
#define MILLRACE_UNKNOWN_RELEASE 0

/*
 * Writes the path of a libjvm.so to library, and its release if it is known. If MILLRACE_JAVA_HOME is set, only that
 * Java counts. Otherwise searches, in this order, directory/runtime (directory of the plugin), JAVA_HOME, the java on
 * the PATH, and the newest under /usr/lib/jvm. Returns 0, or -1 with a report of the searched places.
 */
int millraceFindJvm(const char *directory, char *library, size_t librarySize, char *report,
                    size_t reportSize, int *release);

#endif
