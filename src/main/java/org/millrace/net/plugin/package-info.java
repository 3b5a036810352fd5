/**
 * Frames over any NCCL network plugin with a table {@code ncclNetPlugin_v8} to {@code v12}, such as aws-ofi-nccl on
 * EFA.
 *
 * <p>
 * {@code PluginNetwork} is the entry point. {@code PluginConnect} and {@code PluginListener} establish connections.
 * {@code PluginSender} and {@code PluginReceiver} move frames as messages. {@code PluginLibrary} and {@code NetTable}
 * represent the plugin. {@code net-plugin.md} describes the guarantees of NCCL's functions, and their use here.
 */
@NullMarked
package org.millrace.net.plugin;

import org.jspecify.annotations.NullMarked;
