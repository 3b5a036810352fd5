/* Hides the descriptors of the JVM and UCX from other programs. */
#ifndef MILLRACE_DESCRIPTORS_H
#define MILLRACE_DESCRIPTORS_H

/*
 * From this call on, descriptors of this process's JVM are closed on exec and in forked children. The same applies to
 * descriptors of UCX, once Java has loaded UCX. Call this function after libjvm is loaded. If the shim creates the JVM,
 * call this function before the creation. Further calls do nothing. Supports Linux on x86-64 and AArch64; does nothing
 * elsewhere.
 */
__attribute__((visibility("default"))) void millraceKeepDescriptors(int ours);

/*
 * Returns the directory of the JVM's libraries, with a slash at the end; empty before the first call of
 * millraceKeepDescriptors.
 */
const char *millraceJdk(void);

#endif
