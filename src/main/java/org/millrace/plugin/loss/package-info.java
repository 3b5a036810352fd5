/**
 * What becomes of a process whose peer is gone while it waits for it. libnccl does not ask about connections that were
 * taken over, and so its kernels would wait for good: a Java program is told by an exception, any other by a line on
 * standard error, by an error of the next enqueue, and after a time of grace by the end of the process.
 */
@NullMarked
package org.millrace.plugin.loss;

import org.jspecify.annotations.NullMarked;
