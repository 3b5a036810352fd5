/**
 * GIN's windows in the memory of a GPU: staged through pinned memory, or copied from GPU to GPU where a process maps
 * another's memory.
 */
package org.millrace.gin.cuda;
