/**
 * The public API: the operations of a communicator, independent of its implementation.
 *
 * <p>
 * This package depends on no other package of the project. The implementations (libnccl through FFM, and the project's
 * own engine on the emulated device) implement {@link org.millrace.Communicator}. {@link java.util.ServiceLoader} finds
 * them, so that a program moves from a laptop to a GPU by configuration only.
 */
@NullMarked
package org.millrace;

import org.jspecify.annotations.NullMarked;
