/**
 * Data path on which Java threads move the data in place of NCCL's proxy. The threads run proxies of {@code
 * org.millrace.proxy}. {@link org.millrace.plugin.takeover.TakeoverPath} creates the connections, and
 * {@link org.millrace.plugin.takeover.TakeoverService} owns the threads. NCCL registers the memory of a connection, and
 * {@code TakeoverConnection} starts a proxy that serves it. Slots can be in GPU memory ({@code DeviceSlots}).
 */
@NullMarked
package org.millrace.plugin.takeover;

import org.jspecify.annotations.NullMarked;
