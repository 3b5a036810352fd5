/**
 * The plugin that libnccl opens, {@code libnccl-net-millrace.so}: this package puts it together, installs it and starts
 * it.
 *
 * <p>
 * A process that is not Java arrives at {@link org.millrace.plugin.PluginEntry}, by JNI; a Java program calls
 * {@link org.millrace.plugin.InProcessPlugin} before it loads libnccl. Both give the shim (src/main/c) the methods of
 * {@code net.NetPlugin}, {@code takeover.TunerPlugin}, {@code gin.GinPlugin} and {@code collnet.CollNetPlugin}, through
 * {@code shim.Upcalls}: each function of NCCL's tables lands in the method of its name ({@code regMr} in
 * {@code NetPlugin.regMr}).
 */
@NullMarked
package org.millrace.plugin;

import org.jspecify.annotations.NullMarked;
