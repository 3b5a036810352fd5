package org.millrace.proxy;

import org.jspecify.annotations.Nullable;

/**
 * Walks through the steps of announced operations: the first step of each is rounded up to a chunk, as the device
 * rounds it.
 */
final class OperationSteps {

    private final OperationQueue queue;
    private @Nullable ProxyOp op;
    private long step;
    private long last;

    OperationSteps(OperationQueue queue, long firstStep) {
        this.queue = queue;
        this.step = firstStep;
    }

    /** The operation the next step belongs to; null if none is announced. */
    @Nullable
    ProxyOp op() {
        if (op == null) {
            op = queue.poll();
            if (op != null) {
                step = Steps.roundUp(step, op.chunkSteps());
                last = step + op.steps();
            }
        }
        return op;
    }

    /** The last operation in which the connection has no part, if there is one; to be asked before {@link #op()}. */
    @Nullable
    ProxyOp without() {
        return queue.without();
    }

    long step() {
        return step;
    }

    /** First step after the operation. */
    long last() {
        return last;
    }

    void advance(long end) {
        step = end;
        if (end == last) {
            op = null;
            queue.ended();
        }
    }

    boolean aborted() {
        return queue.aborted();
    }

    boolean drained() {
        return op == null && queue.isEmpty();
    }
}
