/**
 * Our own communicator on the emulated device: what the program calls, the parts it is made of, and the threads that
 * run them. Ranks meet in {@code bootstrap} and agree in {@code options}, connections are made in {@code connect},
 * operations become kernels in {@code plan}. What kernels do is known in {@code org.millrace.device} alone, which knows
 * nothing of this package.
 */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
