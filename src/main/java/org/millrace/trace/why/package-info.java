/**
 * Why nothing moves: from what the ranks of a host have written down, who waits for whom, and for what
 * ({@code millrace why}).
 *
 * <p>
 * {@link org.millrace.trace.why.Links} puts the two ends of each connection together,
 * {@link org.millrace.trace.why.Hang} finds the one that all wait for, and says so in a
 * {@link org.millrace.trace.why.Verdict}. {@link org.millrace.trace.why.StallWatch} asks by itself where a connection
 * stands still.
 */
@NullMarked
package org.millrace.trace.why;

import org.jspecify.annotations.NullMarked;
