/**
 * The plugin that libnccl opens, {@code libnccl-net-millrace.so}: what it makes of NCCL's tables, how it is put
 * together, installed and started.
 *
 * <p>
 * A process that is not Java arrives at {@link org.millrace.plugin.PluginEntry}, by JNI; a Java program calls
 * {@link org.millrace.plugin.InProcessPlugin} before it loads libnccl. Both give the shim (src/main/c) the methods of
 * {@code NetPlugin}, {@code TunerPlugin}, {@code GinPlugin} and {@code CollNetPlugin}, through {@code Upcalls}: each
 * function of NCCL's tables lands in the method of its name ({@code regMr} in {@code NetPlugin.regMr}).
 *
 * <ul>
 * <li>Network: connections are made by the networks of {@code org.millrace.net}; a {@code DataPath} decides who moves
 * their data. Threads serve their memory in the place of NCCL's proxy, with the proxies of {@code org.millrace.proxy}
 * ({@code TakeoverPath}), or NCCL's proxy stays in charge ({@code FallbackPath}).</li>
 * <li>GIN and RMA: it makes the memory that kernels and {@code org.millrace.gin} share, and has ranks of one host share
 * some of it; {@code org.millrace.gin} carries descriptors out.</li>
 * <li>Losses: libnccl does not ask about connections that were taken over, and so its kernels would wait for good for a
 * peer that is gone. A Java program is told by an exception, any other by a line on standard error, by an error of the
 * next enqueue, and after a time of grace by the end of the process.</li>
 * </ul>
 */
@NullMarked
package org.millrace.plugin;

import org.jspecify.annotations.NullMarked;
