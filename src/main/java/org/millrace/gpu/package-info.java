/**
 * Communicators over libnccl: its kernels on GPUs, and our proxies, which take its connections over. Nothing here moves
 * data; it meets the other ranks, makes NCCL's calls and watches that they return. It uses the bindings of {@code cuda}
 * and {@code nccl}, the plugin of this process, and the control plane by which ranks meet.
 */
@NullMarked
package org.millrace.gpu;

import org.jspecify.annotations.NullMarked;
