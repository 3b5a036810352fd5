/**
 * Frames over any NCCL network plugin with a table from {@code ncclNetPlugin_v8} to {@code v12}. An example is
 * aws-ofi-nccl, which uses EFA.
 *
 * <p>
 * {@code PluginNetwork} is the entry point. {@code PluginConnect} and {@code PluginListener} establish connections.
 * {@code PluginSender} and {@code PluginReceiver} transfer frames as messages of the plugin. {@code PluginLibrary} and
 * {@code NetTable} represent the plugin itself. {@code net-plugin.md} describes what NCCL's functions guarantee, and
 * how Millrace uses them.
 */
@NullMarked
package org.millrace.net.plugin;

import org.jspecify.annotations.NullMarked;
