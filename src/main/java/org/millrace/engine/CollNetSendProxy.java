package org.millrace.engine;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.engine.CollNetConnection.RequestFifo;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.proxy.spi.Steps;

/**
 * Submits the device's posted steps to the network. Each request contains one step. A step is submitted as soon as the
 * receiving side has a slot for the step's result. When a request completes, the proxy returns the slot of the sent
 * step to the device. The steps use the protocol Simple and are submitted in ascending order. The number of an
 * operation's first step is not rounded up to a multiple of a chunk, because a chunk is one step. NCCL's COLLNET does
 * the same.
 */
final class CollNetSendProxy extends AbstractProxy {

    private final ConnectionInfo send;
    private final ConnectionInfo receive;
    private final MemoryRegion from;
    private final MemoryRegion to;
    private final CollectiveNetwork network;
    private final RequestFifo requests;
    private final Queue<ProxyOp> operations = new ConcurrentLinkedQueue<>();
    private final long slotBytes;
    private ProxyOp.@Nullable CollNetOp op;
    private long steps;
    private long remaining;
    /** Number of this rank in the network. */
    private final int rank;
    private long posted;
    private long freed;

    CollNetSendProxy(int rank, ConnectionName name, ConnectionInfo send, ConnectionInfo receive, MemoryRegion from,
            MemoryRegion to, CollectiveNetwork network, RequestFifo requests, ProxyConnection.StopListener listener) {
        super(name, listener);
        this.rank = rank;
        this.send = send;
        this.receive = receive;
        this.from = from;
        this.to = to;
        this.network = network;
        this.requests = requests;
        this.slotBytes = send.layout().slotBytes(Protocol.SIMPLE);
        this.posted = send.firstStep();
        this.freed = send.firstStep();
    }

    void announce(ProxyOp announced) {
        operations.add(announced);
    }

    @Override
    protected int pass() {
        return release() + post();
    }

    private int post() {
        int begun = 0;
        while (!requests.isFull() && hasOperation() && Steps.reached(send.recvMem().tailAcquire(), posted + 1)
                && Steps.reached(receive.sendMem().headAcquire() + ConnectionLayout.SLOTS, posted + 1)) {
            long window = op.windowBytes(steps - remaining);
            int request = ask(steps - remaining);
            if (request < 0) {
                break;
            }
            requests.add(request,
                    op.operation() == Operation.REDUCE_SCATTER ? op.ownBytes(steps - remaining, rank) : window);
            posted++;
            if (trace != null) {
                trace.taken(posted, send.recvMem().sizePlain(ConnectionLayout.slot(posted - 1)), Protocol.SIMPLE.id());
            }
            remaining--;
            begun++;
        }
        return begun;
    }

    /**
     * Requests the reduction or the gathering of one step's elements. Returns the number of the request; negative if
     * the network cannot begin the request now. The device has already posted this rank's contribution.
     */
    private int ask(long step) {
        long window = op.windowBytes(step);
        long given = op.operation() == Operation.ALL_GATHER ? op.ownBytes(step, rank) : window;
        long size = send.recvMem().sizePlain(ConnectionLayout.slot(posted));
        if (size != given) {
            throw new ProxyException(name + ", step " + posted + ": the device posted a size of " + size + " bytes, "
                    + "and " + op.operation().label() + " sends " + given + " there");
        }
        long offset = ConnectionLayout.slot(posted) * slotBytes;
        return switch (op.operation()) {
            case ALL_GATHER ->
                network.iallgather(from, offset, to, offset, op.bytesPerRank(), op.windowOffset(step), window);
            case REDUCE_SCATTER -> network.ireducescatter(from, offset, to, offset, op.bytesPerRank(),
                    op.windowOffset(step), window, op.type(), op.op());
            default -> network.iallreduce(from, offset, to, offset, window / op.type().bytes(), op.type(), op.op());
        };
    }

    private boolean hasOperation() {
        if (remaining == 0) {
            ProxyOp next = operations.poll();
            op = next == null ? null : next.collNet();
            steps = next == null ? 0 : next.steps();
            remaining = steps;
        }
        return remaining > 0;
    }

    /**
     * Returns slots of completed requests to the device. First resets the size of each slot to {@code EMPTY}, and then
     * advances head. The release store of head pairs with the device's acquire load of head. The device therefore sees
     * {@code EMPTY}, and may write the slot.
     */
    private int release() {
        long done = send.firstStep() + requests.done();
        int released = (int) (done - freed);
        while (freed != done) {
            send.recvMem().sizePlain(ConnectionLayout.slot(freed++), RecvMem.EMPTY);
            if (trace != null) {
                trace.done(freed);
            }
        }
        if (released > 0) {
            send.sendMem().headRelease(freed);
        }
        return released;
    }

    @Override
    public boolean drained() {
        return remaining == 0 && operations.isEmpty() && requests.isEmpty();
    }

    @Override
    public String lastSeen() {
        return "head " + send.sendMem().headAcquire() + ", tail " + send.recvMem().tailAcquire() + ", posted to "
                + posted;
    }
}
