/**
 * Communicators over libnccl. They use its kernels on GPUs, and Millrace's proxies, which take over its connections.
 * This package moves no data. It joins the other ranks, makes NCCL's calls, and watches that they return. It uses the
 * bindings in {@code cuda} and {@code nccl}, the plugin of this process, and the control plane over which ranks join.
 */
@NullMarked
package org.millrace.gpu;

import org.jspecify.annotations.NullMarked;
