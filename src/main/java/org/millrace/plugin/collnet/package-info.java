/**
 * NCCL's collective network table: {@link org.millrace.plugin.collnet.CollNetPlugin} has a method for each of its
 * functions. NCCL's kernels and NCCL's proxy do their part as with a switch that reduces; in the switch's place the
 * processes reduce for each other, by {@code org.millrace.collnet.mesh}.
 */
@NullMarked
package org.millrace.plugin.collnet;

import org.jspecify.annotations.NullMarked;
