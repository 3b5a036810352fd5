/**
 * The memory that kernels share with the plugin if they gather what they receive from pages themselves (NCCL's network
 * device UNPACK). Both ways of moving data use it, {@code takeover} and {@code fallback}.
 */
@NullMarked
package org.millrace.plugin.unpack;

import org.jspecify.annotations.NullMarked;
