/**
 * The frames of a connection over several rails, each a way between two network cards: pieces go to the rail that will
 * deliver them first, and what a lost rail owed goes over the others.
 *
 * <p>
 * A frame is complete for its sender when the receiver has acknowledged all its pieces; so its memory is kept longer,
 * and each piece costs a header, a call and an acknowledgement that {@code stripes} does not have. It uses
 * {@code stream}.
 */
@NullMarked
package org.millrace.net.socket.rails;

import org.jspecify.annotations.NullMarked;

