/**
 * Descriptors of the structs that a kernel launch passes to a kernel, and of the memory through which threads and
 * resident kernels exchange work. The descriptors follow the rules of {@link org.millrace.abi}.
 */
@NullMarked
package org.millrace.abi.kernel;

import org.jspecify.annotations.NullMarked;
