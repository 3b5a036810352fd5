/**
 * The plugin that libnccl opens, {@code libnccl-net-millrace.so}. This package contains its entry points, NCCL's
 * tables, the configuration and the installer.
 *
 * <p>
 * A process without Java enters through {@link org.millrace.plugin.PluginEntry}, by JNI. A Java program calls
 * {@link org.millrace.plugin.InProcessPlugin} before it loads libnccl. Both pass the shim (src/main/c) the methods of
 * {@code NetPlugin}, {@code TunerPlugin}, {@code GinPlugin}, {@code ProfilerPlugin} and {@code CollNetPlugin}, through
 * {@code Upcalls}. Each function of NCCL's tables calls the method of its name ({@code regMr} calls
 * {@code NetPlugin.regMr}).
 *
 * <p>
 * The data of a connection moves on one of two paths: {@code takeover}, where Java threads serve the memory of the
 * connections, and {@code fallback}, where NCCL's proxy moves the data. Both use {@code path}. The package {@code gin}
 * serves GIN and RMA, {@code loss} reports lost peers, and {@code host} is the view of the process that all share.
 */
@NullMarked
package org.millrace.plugin;

import org.jspecify.annotations.NullMarked;
