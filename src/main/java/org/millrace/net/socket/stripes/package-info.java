/**
 * The frames of a connection over one rail: a payload travels behind its header, or in one part per stream.
 *
 * <p>
 * A frame is complete for its sender when the kernel has its bytes: TCP delivers them, or the connection is lost. The
 * receiver says nothing but goodbye. It uses {@code stream}.
 */
@NullMarked
package org.millrace.net.socket.stripes;

import org.jspecify.annotations.NullMarked;
