/**
 * Calls of functions in C, all of them through one link: {@link org.millrace.foreign.CFunction}, and memory of the
 * system's that is had by them.
 */
@NullMarked
package org.millrace.foreign;

import org.jspecify.annotations.NullMarked;
