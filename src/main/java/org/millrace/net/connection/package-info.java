/**
 * Code that all networks share. It keeps the open resources, the registered memory and the state of a connection. It
 * also contains the two sides of the handshake, and the orderly close of connections.
 *
 * <p>
 * The package uses the contracts in {@link org.millrace.net} and moves no frame itself. The networks are built on the
 * package.
 */
@NullMarked
package org.millrace.net.connection;

import org.jspecify.annotations.NullMarked;
