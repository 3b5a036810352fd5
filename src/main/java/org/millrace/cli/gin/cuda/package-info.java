/**
 * The patterns of {@code millrace gin} on GPUs: kernels of our own that use NCCL's device functions, whose queues this
 * JVM serves.
 */
package org.millrace.cli.gin.cuda;
