/**
 * Java threads serve the memory of connections in the place of NCCL's proxy: where it lies, the proxies that serve it,
 * and what NCCL's tuner is told for it. The proxies themselves are those of {@code org.millrace.proxy}.
 */
@NullMarked
package org.millrace.plugin.takeover;

import org.jspecify.annotations.NullMarked;
