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
    /** Taken out and not at its end. The proxy's thread alone. */
    private @Nullable ProxyOp current;

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
     * finds the queue empty <i>after</i> that knows that no operation up to it is still to come.
     */
    @Nullable
    ProxyOp without() {
        return without;
    }

    @Nullable
    ProxyOp poll() {
        current = operations.poll();
        return current;
    }

    /** What was taken out last is at its end. */
    void ended() {
        current = null;
    }

    /**
     * Whether steps are left of an operation before another. Where operations are announced for several queues, one
     * after the other, none can still come.
     */
    boolean isBehind(long opCount) {
        ProxyOp oldest = current == null ? operations.peek() : current;
        return oldest != null && oldest.opCount() - opCount < 0;
    }

    boolean isEmpty() {
        return operations.isEmpty();
    }
}
