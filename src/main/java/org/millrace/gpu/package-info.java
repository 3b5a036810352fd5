/** Communicators over libnccl: its kernels on GPUs, and our proxies, which take its connections over. */
package org.millrace.gpu;
