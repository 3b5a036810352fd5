package org.millrace.proxy;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;

/**
 * The operations that an engine announced for one connection, in the device's order of execution. The engine's thread
 * adds operations, and the proxy's thread removes them.
 */
public final class OperationQueue {

    private final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    /** Newest announced operation without steps on this connection; null if none. */
    private volatile @Nullable ProxyOp without;
    /**
     * First step after all announced steps. The engine writes it with a plain store, before it tells the device about
     * the operation. See {@link #requireAnnounced} for its publication to the proxy's thread.
     */
    private long announced;

    // Only the proxy's thread accesses the following fields.
    /** Operation that was removed from the queue and has incomplete steps; otherwise null. */
    private @Nullable ProxyOp op;
    private long step;
    private long last;

    /** Announces an operation. Called by the engine. */
    public void add(ProxyOp op) {
        if (op.steps() == 0) {
            without = op;
        } else {
            announced = Steps.roundUp(announced, op.chunkSteps()) + op.steps();
            operations.add(op);
        }
    }

    /**
     * Checks the {@code head} of a receiving device. {@code head} must not be more than {@link ConnectionLayout#SLOTS}
     * steps past the announced steps. The engine announces an operation before the device stores {@code head} with a
     * release. The caller's acquire of {@code head} pairs with that release, so the caller sees the announcement.
     */
    void requireAnnounced(ConnectionName name, long head) {
        if (!Steps.reached(announced + ConnectionLayout.SLOTS, head)) {
            throw new ProxyException(name + ": the device's head is " + head
                    + ", and operations were announced to step " + announced + ": another writer changed the counter");
        }
    }

    /**
     * Returns the newest announced operation that has no steps on this connection; null if none. If a later call of
     * {@link #op()} returns null, all operations announced before this operation have left the queue.
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
     * Returns the operation of the next step; null if no operation is announced. This method rounds up the first step
     * of each operation to a multiple of the chunk, as the device does.
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

    /** Returns the first step after the operation that {@link #op} returned. */
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
     * Returns whether the queue contains steps of any operation before the given operation. The engine must announce
     * each operation to all queues before it announces the next operation. Under this condition, a result of false is
     * final.
     *
     * @param opCount number of the given operation
     */
    boolean isBehind(long opCount) {
        ProxyOp oldest = op == null ? operations.peek() : op;
        return oldest != null && oldest.opCount() - opCount < 0;
    }

    boolean drained() {
        return op == null && operations.isEmpty();
    }
}
