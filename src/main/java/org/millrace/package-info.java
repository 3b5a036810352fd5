/**
 * The public vocabulary: what a program says to a communicator, whichever implementation is behind it.
 *
 * <p>
 * This package depends on nothing else of the project. The implementations (libnccl through FFM, and the project's own
 * engine on the emulated device) implement {@link org.millrace.Communicator} and are found through
 * {@link java.util.ServiceLoader}, so that a program moves from a laptop to a GPU by configuration alone.
 */
@NullMarked
package org.millrace;

import org.jspecify.annotations.NullMarked;
