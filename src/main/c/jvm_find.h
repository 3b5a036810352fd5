/* Finds a Java to run on. */
#ifndef MILLRACE_JVM_FIND_H
#define MILLRACE_JVM_FIND_H

#include <stddef.h>

/* The oldest release that has the foreign function interface the jar needs. */
#define MILLRACE_OLDEST_JAVA 22
/* Of a Java that does not tell. */
#define MILLRACE_UNKNOWN_RELEASE 0

/* Puts the path of a libjvm.so into library, and its release, if it tells. Looks, in this order, at directory/runtime (where the plugin
 * is installed), MILLRACE_JAVA_HOME, JAVA_HOME, the java on the PATH, and the newest under /usr/lib/jvm.
 * If MILLRACE_JAVA_HOME is set it is that or none. Returns 0, or -1 with a report of what was looked at. */
int millraceFindJvm(const char *directory, char *library, size_t librarySize, char *report,
                    size_t reportSize, int *release);

#endif
