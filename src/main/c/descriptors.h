/* Keeps from other programs what the JVM and UCX open. */
#ifndef MILLRACE_DESCRIPTORS_H
#define MILLRACE_DESCRIPTORS_H

/* From now on what the JVM of this process opens is closed on exec and in forked children; so is what UCX opens, once
 * Java has loaded it. To be called when libjvm is loaded, and before the JVM is created where it is ours alone; further
 * calls do nothing. Linux on x86-64 and AArch64; nothing is done elsewhere. */
__attribute__((visibility("default"))) void millraceKeepDescriptors(int ours);

/* Where the JVM's libraries lie, with a slash at the end; empty before the first call of that. */
const char *millraceJdk(void);

#endif
