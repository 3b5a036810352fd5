/**
 * Descriptors of the memory that NCCL's kernels and a proxy share. One class describes each struct. It names the
 * struct's fields and knows their offsets from the layouts generated from {@code headers/}. It states the writer and
 * the reader of each field, and the pairing of ordered accesses. The name of a method contains the order of its access:
 * {@code headAcquire}, {@code tailRelease}. {@code Plain} is for a field's only writer, and for fields that the order
 * of another field publishes.
 *
 * <p>
 * A descriptor is a view. It owns no memory, allocates nothing after its construction, and checks its segment once.
 * Descriptors of memory that threads poll use its address from then on, from any thread. They do not notice if the
 * memory was freed: the owner of the memory stops the threads before it frees it. The descriptors of lines receive a
 * slot's segment, and check it once for all lines of a call. No class in this package knows the meaning of a step.
 */
@NullMarked
package org.millrace.abi;

import org.jspecify.annotations.NullMarked;
