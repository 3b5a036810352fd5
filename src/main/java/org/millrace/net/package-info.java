/**
 * Moving frames from one process to another: a header of a few words, and a payload whose destination the receiver
 * picks when it sees the header. These are the contracts; they know nothing of steps, slots or GPUs.
 *
 * <p>
 * Senders and receivers never block, never allocate per frame, and belong to one thread at a time. The packages below
 * ({@code connection}, {@code socket}, {@code shm}, {@code auto}, {@code fault}) use these contracts; nothing here uses
 * them.
 */
@NullMarked
package org.millrace.net;

import org.jspecify.annotations.NullMarked;
