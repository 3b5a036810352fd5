package org.millrace.transport.collnet;

import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.transport.collnet.Aggregator.AggregateHeader;

/**
 * A rank's end of an {@link Aggregator}: elements go out in one frame, the result comes in one. Requests are done in
 * the order in which they were begun.
 */
public final class AggregatorClient implements CollectiveNetwork {

    private final FrameSender sender;
    private final FrameReceiver receiver;
    private final FrameHeader header = new FrameHeader();
    private final MemoryRegion[] destinations = new MemoryRegion[REQUESTS];
    private final long[] offsets = new long[REQUESTS];
    private final long[] bytes = new long[REQUESTS];
    private long begun;
    private long accepted;
    private long done;

    /** An end whose connections with the aggregator are made; they are closed with this. */
    public AggregatorClient(FrameSender sender, FrameReceiver receiver) {
        this.sender = sender;
        this.receiver = receiver;
    }

    /** Without what a rank does to its own elements before, or to the result after. */
    @Override
    public boolean reduceSupport(DataType type, ReduceOp op) {
        return op instanceof ReduceOp.BuiltIn && op != ReduceOp.AVG;
    }

    @Override
    public int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op) {
        if (begun - done == REQUESTS) {
            return -1;
        }
        AggregateHeader.write(header, begun, count, type, op);
        if (!sender.offer(header, send, sendOffset)) {
            return -1;
        }
        int request = (int) (begun % REQUESTS);
        destinations[request] = receive;
        offsets[request] = receiveOffset;
        bytes[request] = header.payloadBytes();
        begun++;
        return request;
    }

    @Override
    public boolean test(int request) {
        progress();
        // no other request under way has its number, so it is done if the oldest that is not done comes after it
        long ahead = Math.floorMod(request - done, (long) REQUESTS);
        return done + ahead >= begun;
    }

    private void progress() {
        sender.progress();
        receiver.progress();
        FrameHeader result = accepted < begun ? receiver.poll() : null;
        while (result != null) {
            int request = (int) (accepted % REQUESTS);
            AggregateHeader.check(result, accepted, bytes[request], receiver);
            receiver.accept(destinations[request], offsets[request]);
            accepted++;
            result = accepted < begun ? receiver.poll() : null;
        }
        done = Math.min(receiver.framesCompleted(), sender.framesCompleted());
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
    }
}
