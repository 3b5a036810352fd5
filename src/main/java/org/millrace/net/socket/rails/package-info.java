/**
 * The frames of a connection over several rails, each a way between two network cards: pieces go to the rail that will
 * deliver them first, and what a lost rail owed goes over the others.
 *
 * <p>
 * A frame is complete for its sender when the receiver has acknowledged all its pieces; so its memory is kept longer,
 * and each piece costs a header, a call and an acknowledgement that {@code stripes} does not have. That is why there
 * are two protocols: over one rail this one takes, of a thread that drives both ends over loopback, 1.6 times the CPU
 * time for a small frame alone and 5 times with 16 in flight; without acknowledgements still 1.25 and 2.6 times. A
 * frame of 1 MiB alone costs 1.3 times; with 16 in flight 0.8 times. It uses {@code stream}.
 */
@NullMarked
package org.millrace.net.socket.rails;

import org.jspecify.annotations.NullMarked;
