/**
 * The plugin that libnccl opens, {@code libnccl-net-millrace.so}. This package contains its entry points, NCCL's
 * tables, the configuration and the installer.
 *
 * <p>
 * A process without Java enters through {@link org.millrace.plugin.PluginEntry}, by JNI. A Java program calls
 * {@link org.millrace.plugin.InProcessPlugin} before it loads libnccl. Both classes pass the methods of
 * {@code NetPlugin}, {@code TunerPlugin}, {@code GinPlugin}, {@code ProfilerPlugin} and {@code CollNetPlugin} to the
 * shim (src/main/c), through {@code Upcalls}. {@code PluginTables} maps each function of NCCL's tables to a method; for
 * the network table, the method has the function's name ({@code regMr} calls {@code NetPlugin.regMr}).
 *
 * <p>
 * The data of a connection moves on one of two data paths. With {@code takeover}, Java threads serve the memory of the
 * connections. With {@code fallback}, NCCL's proxy moves the data. Both data paths are based on {@code path}. The
 * package {@code gin} serves GIN and RMA, {@code loss} reports lost peers, and {@code host} contains the access to the
 * process.
 */
@NullMarked
package org.millrace.plugin;

import org.jspecify.annotations.NullMarked;
