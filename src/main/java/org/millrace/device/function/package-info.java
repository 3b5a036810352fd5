/**
 * The functions that kernels run, one class for each operation and algorithm; a number names the function together with
 * protocol, type and operator ({@code ncclDevFuncTable}). A function makes the block that runs an item of work, and
 * says what that block sends and receives on a channel: the device asks for both, the host for the latter, to announce
 * it to the proxies. It keeps no state. How to add an algorithm: {@code src/site/markdown/development/networks.md}.
 * Uses {@code primitives}, {@code channel} and {@code work}.
 */
@NullMarked
package org.millrace.device.function;

import org.jspecify.annotations.NullMarked;
