/**
 * GIN's windows in the memory of a GPU: staged through pinned memory, or copied from GPU to GPU where a process maps
 * another's memory. Implements what {@link org.millrace.gin.window} and {@link org.millrace.gin.queue} ask for.
 */
@NullMarked
package org.millrace.gin.cuda;

import org.jspecify.annotations.NullMarked;
