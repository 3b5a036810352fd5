/**
 * Frames over any network plugin of NCCL's: whatever has a table {@code ncclNetPlugin_v8} to {@code v12}, such as
 * aws-ofi-nccl on EFA.
 *
 * <p>
 * The entry point is this package. Below it, each package using only those behind it: {@code handshake} makes
 * connections, {@code frames} moves their frames as messages, {@code table} is the plugin. What NCCL's functions
 * promise and what is made of it here is in {@code net-plugin.md}.
 */
@NullMarked
package org.millrace.net.plugin;

import org.jspecify.annotations.NullMarked;
