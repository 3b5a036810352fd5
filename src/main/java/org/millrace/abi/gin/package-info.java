/**
 * Descriptors of the memory that a kernel with GIN shares with an agent: queues, descriptors, indices and signals. The
 * descriptors follow the rules of {@link org.millrace.abi}.
 */
@NullMarked
package org.millrace.abi.gin;

import org.jspecify.annotations.NullMarked;
