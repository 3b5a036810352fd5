/** Calls of functions in C, all of them through one link: {@link org.millrace.foreign.CFunction}. */
@NullMarked
package org.millrace.foreign;

import org.jspecify.annotations.NullMarked;
