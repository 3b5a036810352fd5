/**
 * The functions that kernels run, one class an algorithm: by operation, algorithm, protocol, type and operator
 * ({@code ncclDevFuncTable}). A function says its block, and what it sends and receives on a channel, for the device
 * and for the host that announces it to the proxies; it keeps no state. Uses {@code primitives}, {@code channel} and
 * {@code work}.
 */
@NullMarked
package org.millrace.device.function;

import org.jspecify.annotations.NullMarked;
