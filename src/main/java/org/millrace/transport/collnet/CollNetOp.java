package org.millrace.transport.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;

/**
 * One all-reduce that goes through the network, as an engine enqueues it.
 *
 * @param type  element type
 * @param op    how elements are combined
 * @param steps steps it takes: one request each
 */
public record CollNetOp(DataType type, ReduceOp.BuiltIn op, long steps) {
}
