/**
 * The emulated device: the effect of kernels on the memory that they share with a proxy, over the same memory and by
 * the same rules as a GPU. The package uses no engine class. Its work arrives as data, in plans and in the memory of
 * {@code abi}.
 *
 * <p>
 * A kernel is a task on a stream and has one block per channel. A block runs one primitive after another (send, receive
 * and reduce, …). A primitive works slice by slice, and returns to its caller when its peer is not ready. One thread
 * can therefore run any number of kernels and the proxies as well. Where no further core is free, a waiting thread of
 * the program runs them. Functions of the program run only on the device's own thread, because they may block.
 *
 * <p>
 * Each operation and algorithm has one class. A number names it together with protocol, type and operator
 * ({@code ncclDevFuncTable}). A function creates the block that runs an item of work, and returns the block's sends and
 * receives on a channel. The device uses both. The host uses the sends and receives to announce them to the proxies. A
 * function keeps no state. To add an algorithm, see {@code src/site/markdown/development/networks.md}.
 */
@NullMarked
package org.millrace.device;

import org.jspecify.annotations.NullMarked;
