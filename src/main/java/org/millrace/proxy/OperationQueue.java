package org.millrace.proxy;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.AbortFlag;

/**
 * The operations that an engine announced for one connection, in the order in which the device will run them. Filled by
 * the engine, emptied by the proxy's thread.
 */
public final class OperationQueue {

    private final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    /** The last operation in which the connection has no part. */
    private volatile @Nullable ProxyOp without;

    // The proxy's thread's.
    /** Taken out and not at its end. */
    private @Nullable ProxyOp op;
    private long step;
    private long last;

    /** Null where nothing is aborted. */
    private final @Nullable AbortFlag abort;

    /** An empty queue, of a device that is not aborted. */
    public OperationQueue() {
        this(null);
    }

    /**
     * An empty queue.
     *
     * @param abort makes the device leave its operations, whose memory may be freed then; null if nothing does
     */
    public OperationQueue(@Nullable AbortFlag abort) {
        this.abort = abort;
    }

    /** Whether the device leaves its operations. */
    boolean aborted() {
        return abort != null && abort.raisedAcquire();
    }

    /** Announces an operation. */
    public void add(ProxyOp op) {
        if (op.steps() == 0) {
            without = op;
        } else {
            operations.add(op);
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
