/**
 * How a host hands work to a device: plans of batches and items, the FIFO in which items travel, the reader that finds
 * them, and the communicator as kernels see it. All of it is data; what work means is said in {@code function}. Uses
 * {@code channel}.
 *
 * <p>
 * A plan's batches travel with the kernel's arguments, and so do its items if they fit. Otherwise the items are copied
 * to the work FIFO, whose room is given back when events behind the kernels are reached; a plan that is replayed keeps
 * its items in memory of its own. Nothing else tells a kernel what to do.
 */
@NullMarked
package org.millrace.device.work;

import org.jspecify.annotations.NullMarked;
