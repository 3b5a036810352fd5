/**
 * The emulated device: streams, events and kernels on one CPU thread at a time, and the launcher that starts a
 * communicator's kernels. It runs what {@code function} says, over the same memory and by the same rules as a GPU, and
 * knows no host class. Uses {@code function} and {@code work}.
 *
 * <p>
 * A kernel is a task on a stream; it has one block per channel; a block runs one primitive after another (send, receive
 * and reduce, …); a primitive works slice by slice and gives up the thread when its peer is not ready. So one thread
 * can run any number of kernels, and the proxies as well; a thread of the program that waits does so, where there is no
 * core to spare for another. Functions of the program run on the device's own thread alone: they may block.
 */
@NullMarked
package org.millrace.device.stream;

import org.jspecify.annotations.NullMarked;
