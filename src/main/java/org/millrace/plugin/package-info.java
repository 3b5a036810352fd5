/**
 * What libnccl calls: the network and tuner tables that {@code libnccl-net-millrace.so} exports forward to here.
 *
 * <p>
 * {@link org.millrace.plugin.PluginEntry} is where a process that is not Java arrives, and {@code InProcessPlugin} is
 * what a Java program calls before it loads libnccl. Both give the shim the functions of {@code NetPlugin}. Who moves
 * the data of a connection is decided by a {@code ConnectionService}.
 */
package org.millrace.plugin;
