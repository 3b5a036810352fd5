/**
 * The emulated device. CPU threads do the work of NCCL's kernels, on the same memory and by the same rules as a GPU.
 * The package uses no class of the engine. It receives its work as data: in plans, and in the memory that {@code abi}
 * describes.
 *
 * <p>
 * A kernel is a task of a stream and has one block per channel. A block runs one primitive after another (send, receive
 * and reduce, …). A primitive works slice by slice, and returns to its caller when its peer is not ready. One thread
 * can therefore run any number of kernels, and the proxies as well. If no further core is free, a waiting thread of the
 * program runs kernels and proxies. Host functions run only on the agent's own thread, because they may block.
 *
 * <p>
 * Each combination of operation and algorithm is a device function with its own class. The number of a function also
 * contains protocol, type and operator ({@code ncclDevFuncTable}). A function creates the block that runs a work item
 * on a channel, and describes the block's sends and receives. The device runs the block. The host announces the sends
 * and receives to the proxies. A function has no state. To add an algorithm, see {@code
 * src/site/markdown/development/networks.md}.
 */
@NullMarked
package org.millrace.device;

import org.jspecify.annotations.NullMarked;
