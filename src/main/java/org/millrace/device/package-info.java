/**
 * The emulated device: what kernels do to the memory that they share with a proxy, over the same memory and by the same
 * rules as a GPU. It knows no engine class: what is to be done reaches it as data, in plans and in the memory of
 * {@code abi}.
 *
 * <p>
 * A kernel is a task on a stream. It has one block per channel; a block runs one primitive after another (send, receive
 * and reduce, …); a primitive works slice by slice and gives up the thread when its peer is not ready. So one thread
 * can run any number of kernels, and the proxies as well; a thread of the program that waits does so, where there is no
 * core to spare for another. Functions of the program run on the device's own thread alone: they may block.
 *
 * <p>
 * There is one class for each operation and algorithm; a number names it together with protocol, type and operator
 * ({@code ncclDevFuncTable}). A function makes the block that runs an item of work, and says what that block sends and
 * receives on a channel: the device asks for both, the host for the latter, to announce it to the proxies. It keeps no
 * state. How to add an algorithm: {@code src/site/markdown/development/networks.md}.
 */
@NullMarked
package org.millrace.device;

import org.jspecify.annotations.NullMarked;
