/**
 * Communicators that use libnccl. NCCL's kernels run on GPUs, and Millrace's proxies take over NCCL's connections. This
 * package moves no data itself. It joins the other ranks, makes NCCL's calls, and detects calls that do not return. It
 * uses the bindings in {@code cuda} and {@code nccl}, the plugin of this process, and the control plane, over which
 * ranks join.
 */
@NullMarked
package org.millrace.gpu;

import org.jspecify.annotations.NullMarked;
