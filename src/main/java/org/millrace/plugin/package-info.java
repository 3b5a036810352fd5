/**
 * The plugin that libnccl opens, {@code libnccl-net-millrace.so}. This package implements NCCL's tables and creates,
 * installs and starts the plugin.
 *
 * <p>
 * A process without Java enters through {@link org.millrace.plugin.PluginEntry}, by JNI. A Java program calls
 * {@link org.millrace.plugin.InProcessPlugin} before it loads libnccl. Both pass the shim (src/main/c) the methods of
 * {@code NetPlugin}, {@code TunerPlugin}, {@code GinPlugin}, {@code ProfilerPlugin} and {@code CollNetPlugin}, through
 * {@code Upcalls}. Each function of NCCL's tables calls the method of its name ({@code regMr} calls
 * {@code NetPlugin.regMr}).
 *
 * <ul>
 * <li>Network: the networks of {@code org.millrace.net} make the connections. A {@code DataPath} determines the threads
 * that move their data. In a takeover ({@code TakeoverPath}), Java threads serve the memory of the connections in place
 * of NCCL's proxy, with the proxies of {@code org.millrace.proxy}. Otherwise NCCL's proxy moves the data
 * ({@code FallbackPath}).</li>
 * <li>GIN and RMA: this package allocates the memory that kernels and {@code org.millrace.gin} share. Ranks of one host
 * share a part of it. {@code org.millrace.gin} executes the descriptors.</li>
 * <li>Losses: libnccl does not poll connections that were taken over, so its kernels would wait forever for a lost
 * peer. A Java program receives an exception. Any other program receives a line on standard error, then an error from
 * the next enqueue. After a time of grace the process ends.</li>
 * </ul>
 */
@NullMarked
package org.millrace.plugin;

import org.jspecify.annotations.NullMarked;
