/**
 * What every network needs to find its peers and to end well: what it has open, its registered memory, the state of a
 * connection, and the two sides of a handshake.
 *
 * <p>
 * It uses the contracts in {@link org.millrace.net} and moves no frame itself; the networks are built on it.
 */
@NullMarked
package org.millrace.net.connection;

import org.jspecify.annotations.NullMarked;
