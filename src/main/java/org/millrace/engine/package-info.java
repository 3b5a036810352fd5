/**
 * Millrace's communicator on the emulated device: its API implementation, its parts, and the threads that run them.
 * Ranks meet in {@code bootstrap}. A thread connects connectors over transports, and operations may use them before
 * they are connected. A connected connector gives the device its port and the proxies their operations. Only
 * {@code org.millrace.device} implements the kernels, and it does not depend on this package.
 */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
