/**
 * Common parts of all networks to find peers and to close connections in order: open resources, registered memory, the
 * state of a connection, and the two sides of a handshake.
 *
 * <p>
 * The package uses the contracts in {@link org.millrace.net} and moves no frame itself. The networks are built on the
 * package.
 */
@NullMarked
package org.millrace.net.connection;

import org.jspecify.annotations.NullMarked;
