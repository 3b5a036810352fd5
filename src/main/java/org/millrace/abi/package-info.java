/**
 * The memory that NCCL's kernels and a proxy share, as descriptors: one class for each struct, which names the struct's
 * fields, knows their offsets from the layouts generated from {@code headers/}, and says who writes each field, who
 * reads it, and which order pairs with which. The order of an access is in its method's name: {@code headAcquire},
 * {@code
 * tailRelease}; {@code Plain} is for a field's only writer, and for fields that another field's order publishes.
 *
 * <p>
 * A descriptor is a view. It owns no memory, allocates nothing after it was made, and checks its segment once.
 * Descriptors of memory that threads poll use its address from then on, from any thread, and do not notice if the
 * memory was freed: its owner stops the threads before it frees it. The descriptors of lines are passed a slot's
 * segment and check it once for all lines of a call. Nothing here knows what a step means.
 */
@NullMarked
package org.millrace.abi;

import org.jspecify.annotations.NullMarked;
