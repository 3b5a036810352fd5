/**
 * Our own communicator on the emulated device: what the program calls, the parts it is made of, and the threads that
 * run them. Ranks meet in {@code bootstrap}. A connector is asked for by the engine, connected over a transport on a
 * thread of its own while operations are issued for it already, and hands the device its port and the proxies their
 * work. What kernels do is known in {@code org.millrace.device} alone, which knows nothing of this package.
 */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
