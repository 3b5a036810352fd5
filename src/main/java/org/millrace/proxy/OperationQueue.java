package org.millrace.proxy;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;

/**
 * The operations that an engine announced for one connection, in the device's order of execution. The engine fills the
 * queue, and the proxy's thread empties it.
 */
public final class OperationQueue {

    private final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    /** The last operation that does not involve the connection. */
    private volatile @Nullable ProxyOp without;
    /**
     * First step after all announced steps. A device that is told of an operation after this write sees the new value.
     */
    private long announced;

    // The following fields belong to the proxy's thread.
    /** The operation that was removed from the queue and is not complete; otherwise null. */
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
     * Checks that {@code head} of a receiving device has not passed the announced steps by more than
     * {@link ConnectionLayout#SLOTS} steps. The device's release of {@code head} comes after the announcement, and the
     * caller's acquire pairs with it.
     */
    void requireAnnounced(ConnectionName name, long head) {
        if (!Steps.reached(announced + ConnectionLayout.SLOTS, head)) {
            throw new ProxyException(name + ": the device's head is " + head
                    + ", and operations were announced to step " + announced + ": something else has written there");
        }
    }

    /**
     * Returns the last operation that does not involve the connection; null before the first one. A thread that reads
     * it, and finds no {@link #op()} <i>after</i> that, knows that no operation up to it is still missing.
     */
    @Nullable
    ProxyOp without() {
        return without;
    }

    /** Sets the step at which the first operation begins. */
    void beginAt(long firstStep) {
        step = firstStep;
        announced = firstStep;
    }

    /**
     * Returns the operation that the next step belongs to; null if none is announced. The first step of each operation
     * is rounded up to a chunk, as the device rounds it.
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

    /** Returns the first step after the operation. */
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
     * Returns whether steps remain of an operation before another. If operations are announced for several queues one
     * after another, no such operation can be announced later.
     */
    boolean isBehind(long opCount) {
        ProxyOp oldest = op == null ? operations.peek() : op;
        return oldest != null && oldest.opCount() - opCount < 0;
    }

    boolean drained() {
        return op == null && operations.isEmpty();
    }
}
