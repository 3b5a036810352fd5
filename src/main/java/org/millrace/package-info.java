/**
 * The public API: the operations of a communicator, independent of its implementation.
 *
 * <p>
 * The public signatures of this package use no type of another package of the project. The implementations of
 * {@link org.millrace.Communicator} use libnccl through FFM, or the project's own engine on the emulated device.
 * {@link java.util.ServiceLoader} finds them. A program therefore moves from a laptop to a GPU by a change of
 * configuration only.
 */
@NullMarked
package org.millrace;

import org.jspecify.annotations.NullMarked;
