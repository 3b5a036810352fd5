/**
 * Losses of peers. libnccl does not poll connections that were taken over, so NCCL's kernels would wait forever for a
 * lost peer. {@link org.millrace.plugin.loss.CommunicatorLosses} records the lost connections of a communicator.
 * {@link org.millrace.plugin.loss.LossWatch} watches the communicators with losses and reports each loss to the
 * program. A Java program receives an exception. Any other program receives a line on standard error, an error from
 * {@code ncclCommGetAsyncError} ({@link org.millrace.plugin.loss.AsyncErrors}), and an error from the next enqueue.
 * After a time of grace the process ends.
 */
@NullMarked
package org.millrace.plugin.loss;

import org.jspecify.annotations.NullMarked;
