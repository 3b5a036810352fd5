/**
 * The emulated device: NCCL's kernels on CPU threads, over the same memory and by the same rules as on a GPU.
 *
 * <p>
 * A kernel is a task on a stream; it has one block per channel; a block runs one primitive after another (send, receive
 * and reduce, …); a primitive works slice by slice and gives up the thread whenever its peer is not ready. So one
 * thread can run any number of kernels, and the proxies as well.
 */
package org.millrace.device.stream;
