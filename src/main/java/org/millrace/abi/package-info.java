/**
 * Descriptors of the memory that NCCL's kernels and a proxy share. One class describes each struct. The class has
 * accessors for the struct's fields. The offsets of the fields come from the layouts that are generated from
 * {@code headers/}. The comment of the class states the writer and the reader of each field, and the pairing of ordered
 * accesses. The name of a method contains the ordering of its access: {@code headAcquire}, {@code tailRelease}. A
 * {@code Plain} access has no ordering. It is correct in two cases: on the thread that alone writes the field, or if an
 * ordered access of another field publishes the field.
 *
 * <p>
 * A descriptor is a view. It owns no memory, allocates nothing after its construction, and checks its segment once. A
 * descriptor of polled memory then accesses the memory by address, on any thread, and cannot detect that the memory was
 * freed. The owner must therefore stop the threads before it frees the memory. The descriptors of lines receive the
 * segment of a slot in each call, and check it once for all lines of the call. No class of this package interprets a
 * step.
 */
@NullMarked
package org.millrace.abi;

import org.jspecify.annotations.NullMarked;
