/**
 * NCCL's primitives: send, receive and combinations of them, a chunk at a time, over the protocols Simple, LL and
 * LL128, or in the user's memory. They know neither the operation nor the peers: functions tell them. Uses the ports of
 * {@code channel} and {@code arithmetic}.
 */
@NullMarked
package org.millrace.device.primitives;

import org.jspecify.annotations.NullMarked;
