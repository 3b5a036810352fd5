package org.millrace.proxy;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;

/**
 * The operations that an engine announced for one connection, in the order in which the device will run them. Filled by
 * the engine, emptied by the proxy's thread.
 */
public final class OperationQueue {

    private final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    /** The last operation in which the connection has no part. */
    private volatile @Nullable ProxyOp without;
    /** First step behind all that were announced. A device that is told of an operation after this sees it. */
    private long announced;

    // The proxy's thread's.
    /** Taken out and not at its end. */
    private @Nullable ProxyOp op;
    private long step;
    private long last;

    /** Announces an operation. */
    public void add(ProxyOp op) {
        if (op.steps() == 0) {
            without = op;
        } else {
            announced = Steps.roundUp(announced, op.chunkSteps()) + op.steps();
            operations.add(op);
        }
    }

    /**
     * {@code head} of a receiving device is behind no step that was not announced to it. The device's release of it,
     * with which the caller's acquire pairs, comes after the announcement.
     */
    void requireAnnounced(ConnectionName name, long head) {
        if (!Steps.reached(announced + ConnectionLayout.SLOTS, head)) {
            throw new ProxyException(name + ": the device's head is " + head
                    + ", and operations were announced to step " + announced + ": something else has written there");
        }
    }

    /**
     * The last operation in which the connection has no part; null before there is one. A thread that reads it and
     * finds no {@link #op()} <i>after</i> that knows that no operation up to it is still to come.
     */
    @Nullable
    ProxyOp without() {
        return without;
    }

    /** The first operation begins at a step. */
    void beginAt(long firstStep) {
        step = firstStep;
        announced = firstStep;
    }

    /**
     * The operation the next step belongs to; null if none is announced. The first step of each is rounded up to a
     * chunk, as the device rounds it.
     */
    @Nullable
    ProxyOp op() {
        if (op == null) {
            op = operations.poll();
            if (op != null) {
                step = Steps.roundUp(step, op.chunkSteps());
                last = step + op.steps();
            }
        }
        return op;
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
        }
    }

    /**
     * Whether steps are left of an operation before another. Where operations are announced for several queues, one
     * after the other, none can still come.
     */
    boolean isBehind(long opCount) {
        ProxyOp oldest = op == null ? operations.peek() : op;
        return oldest != null && oldest.opCount() - opCount < 0;
    }

    boolean drained() {
        return op == null && operations.isEmpty();
    }
}
