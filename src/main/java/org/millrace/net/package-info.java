/**
 * Contracts for networks that move frames between processes. A frame is a header of a few words and a payload. The
 * receiver chooses the payload's destination when it sees the header. The contracts contain no steps, slots or GPUs,
 * which belong to higher layers.
 *
 * <p>
 * Senders and receivers never block, never allocate per frame, and belong to one thread at a time. The subpackages
 * ({@code connection}, {@code check}, {@code socket}, {@code shm}, {@code ucx}, {@code plugin}, {@code link},
 * {@code auto}) use these contracts; this package uses none of the subpackages.
 */
@NullMarked
package org.millrace.net;

import org.jspecify.annotations.NullMarked;
