/* Limits for the JVM's compilers. */
#ifndef MILLRACE_COMPILERS_H
#define MILLRACE_COMPILERS_H

#include "jvm_options.h"

/* Adds options that fit the cores that this process may use. With few cores only C1 compiles. */
void millraceAddCompilerOptions(struct millraceOptions *options);

/*
 * Gives the threads of C2 almost no time on a core that other threads need, unless data is encrypted. A polling thread
 * always needs its core. Without C2's code, encryption takes a hundred times as long. Called after the JVM has started.
 */
void millraceLowerCompilers(void);

#endif
