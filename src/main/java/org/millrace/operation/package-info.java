/**
 * State that the public API shares with the implementations of communicators and devices: the open group of a thread,
 * completion stages, memory for copies of operands, and the calling thread. Not exported, because programs use none of
 * it.
 */
@NullMarked
package org.millrace.operation;

import org.jspecify.annotations.NullMarked;
