/**
 * Reads what processes wrote down with {@code org.millrace.trace}. Other processes can write what they like: every
 * number is checked before it counts or places anything, and text is made fit for a terminal.
 */
@NullMarked
package org.millrace.trace.reader;

import org.jspecify.annotations.NullMarked;
