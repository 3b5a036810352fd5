/* What the JVM's compilers take of a process's cores. */
#ifndef MILLRACE_COMPILERS_H
#define MILLRACE_COMPILERS_H

#include "jvm_options.h"

/* Adds what fits the cores that this process may use: on few of them C1 alone compiles. */
void millraceAddCompilerOptions(struct millraceOptions *options);

/* Lets C2 have next to nothing of a core that others want, unless data is encrypted: who polls always wants it, and
 * until C2 has run, encryption costs a hundred times as much. Called when the JVM has started. */
void millraceLowerCompilers(void);

#endif
