package org.millrace.collnet;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.MismatchException;
import org.millrace.ReduceOp;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.collnet.MeshRequest.Function;
import org.millrace.element.ElementKernel;
import org.millrace.failure.RepeatedFailure;
import org.millrace.net.ConnectionException;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.FullMesh;

/**
 * A rank's end of a network without hardware that reduces: the ranks reduce for each other. All ranks make the same
 * calls in the same order. A rank may be up to {@value #REQUESTS} requests ahead of the other ranks. One thread makes
 * and tests requests. The aggregators' threads transfer and reduce data.
 *
 * <p>
 * {@linkplain org.millrace.collnet The package} describes the data that each rank sends.
 */
public final class MeshNetwork implements CollectiveNetwork {

    public static final int REQUESTS = 256;

    /**
     * Maximum size of a piece in bytes. A thread processes one piece at a time. Three pieces of this size fit into a
     * core's second-level cache.
     */
    static final long MAX_PIECE_BYTES = 256 << 10;

    private final int rank;
    private final int ranks;
    private final Network frames;
    private final List<MeshAggregator> aggregators = new ArrayList<>();
    private final List<AgentRunner> runners = new ArrayList<>();
    private final @Nullable ElementKernel[][] kernels =
            new ElementKernel[DataType.values().length][ReduceOp.BuiltIn.values().length];
    private final MeshRequest[] requests = new MeshRequest[REQUESTS];
    /**
     * Number of requests that were made. {@link #reported} is the number of requests with a reported completion. This
     * rank writes a request's fields and then increments {@code requested} with release. An aggregator reads
     * {@code requested} with acquire and then reads the fields. The release pairs with this acquire.
     */
    private final AtomicLong requested = new AtomicLong();
    private final AtomicLong reported = new AtomicLong();
    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    private boolean closed;

    /**
     * Creates a network over established connections, which the network closes.
     *
     * @param frames network that made the connections
     * @param meshes for each aggregator of this rank, its connections to the aggregators with the same index on the
     *               other ranks; all ranks have the same number of aggregators
     * @param idle   idle strategy of an aggregator's thread; null for no threads, so that {@link #test} makes the
     *               progress
     */
    public MeshNetwork(int rank, Network frames, List<FullMesh> meshes, @Nullable Supplier<IdleStrategy> idle) {
        this.rank = rank;
        this.ranks = meshes.getFirst().senders().length;
        this.frames = frames;
        for (int i = 0; i < REQUESTS; i++) {
            requests[i] = new MeshRequest();
        }
        for (FullMesh mesh : meshes) {
            aggregators.add(new MeshAggregator(this, aggregators.size(), meshes.size(), rank, frames, mesh.senders(),
                    mesh.receivers()));
        }
        if (idle != null) {
            aggregators.forEach(each -> runners.add(AgentRunner.start(each, idle.get())));
        }
    }

    public int rank() {
        return rank;
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return frames.register(memory);
    }

    /**
     * {@return whether requests may reduce with an operator} Operators that change the elements before or after the
     * reduction are not supported.
     */
    public static boolean reduces(ReduceOp op) {
        return op instanceof ReduceOp.BuiltIn && op != ReduceOp.AVG;
    }

    @Override
    public int iallreduce(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset, long count,
            DataType type, ReduceOp.BuiltIn op) {
        MeshRequest request = next(send, sendOffset, receive, receiveOffset);
        return request == null ? NO_REQUEST : ask(request, Function.ALL_REDUCE, type, op, 0, 0, count * type.bytes());
    }

    @Override
    public int iallgather(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
            long bytesPerRank, long windowOffset, long windowBytes) {
        check(bytesPerRank, windowOffset, windowBytes);
        MeshRequest request = next(send, sendOffset, receive, receiveOffset);
        return request == null ? NO_REQUEST
                : ask(request, Function.ALL_GATHER, DataType.INT8, ReduceOp.BuiltIn.SUM, bytesPerRank, windowOffset,
                        windowBytes);
    }

    @Override
    public int ireducescatter(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset,
            long bytesPerRank, long windowOffset, long windowBytes, DataType type, ReduceOp.BuiltIn op) {
        check(bytesPerRank, windowOffset, windowBytes);
        MeshRequest request = next(send, sendOffset, receive, receiveOffset);
        return request == null ? NO_REQUEST
                : ask(request, Function.REDUCE_SCATTER, type, op, bytesPerRank, windowOffset, windowBytes);
    }

    /**
     * Returns the kernel for a type and an operator. The kernel is created at its first use, so that later requests
     * allocate nothing.
     */
    private ElementKernel kernel(DataType type, ReduceOp.BuiltIn op) {
        ElementKernel made = kernels[type.code()][op.code()];
        if (made == null) {
            made = ElementKernel.alike(type, op);
            kernels[type.code()][op.code()] = made;
        }
        return made;
    }

    private void check(long bytesPerRank, long windowOffset, long windowBytes) {
        if (bytesPerRank < 0 || windowOffset < 0 || windowBytes < 0
                || windowOffset > ranks * bytesPerRank - windowBytes) {
            throw new IllegalArgumentException("bytes " + windowOffset + " to " + (windowOffset + windowBytes)
                    + " do not lie within " + ranks + " ranks' parts of " + bytesPerRank + " bytes");
        }
    }

    /**
     * Returns the {@link MeshRequest} for the next request, and sets its memory. Returns null if the object still
     * serves an earlier request.
     */
    private @Nullable MeshRequest next(MemoryRegion send, long sendOffset, MemoryRegion receive, long receiveOffset) {
        failIfLost();
        MeshRequest request = requests[(int) (requested.getPlain() % REQUESTS)];
        if (request.inUse) {
            return null;
        }
        request.send = send;
        request.sendOffset = sendOffset;
        request.receive = receive;
        request.receiveOffset = receiveOffset;
        return request;
    }

    private int ask(MeshRequest request, Function function, DataType type, ReduceOp.BuiltIn op, long bytesPerRank,
            long windowOffset, long windowBytes) {
        request.function = function;
        request.type = type;
        request.op = op;
        request.kernel = kernel(type, op);
        request.bytesPerRank = bytesPerRank;
        request.windowOffset = windowOffset;
        request.windowBytes = windowBytes;
        request.cut(ranks, aggregators.size(), MAX_PIECE_BYTES);
        request.inUse = true;
        int number = (int) (requested.getPlain() % REQUESTS);
        requested.setRelease(requested.getPlain() + 1);
        runners.forEach(AgentRunner::wake);
        return number;
    }

    @Override
    public long test(int request) {
        MeshRequest tested = requests[Objects.checkIndex(request, REQUESTS)];
        if (!tested.inUse) {
            throw new IllegalArgumentException("request " + request + " is not in flight");
        }
        if (runners.isEmpty()) {
            aggregators.forEach(this::pass);
        }
        if (!tested.isDone()) {
            failIfLost();
            return PENDING;
        }
        tested.inUse = false;
        reported.setRelease(reported.getPlain() + 1);
        return tested.windowBytes;
    }

    private void pass(MeshAggregator aggregator) {
        try {
            aggregator.doWork();
        } catch (RuntimeException | Error failed) {
            aggregator.onFailure(failed);
        }
    }

    private void failIfLost() {
        Throwable why = failure.get();
        if (why != null) {
            String text = "the collective network of rank " + rank + " has ended: " + why.getMessage();
            throw why instanceof MismatchException ? RepeatedFailure.of(text, why) : new ConnectionException(text, why);
        }
    }

    /** {@return whether the completion of any request was not reported yet} Callable from any thread. */
    public boolean isBusy() {
        return reported.getAcquire() != requested.getAcquire();
    }

    /** Records a failure. Only the first failure is reported. */
    void fail(Throwable why) {
        failure.compareAndSet(null, why);
    }

    long requested() {
        return requested.getAcquire();
    }

    MeshRequest request(long number) {
        return requests[(int) (number % REQUESTS)];
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            runners.forEach(AgentRunner::close);
            boolean lost = failure.get() != null || isBusy();
            fail(new ConnectionException("it was closed"));
            aggregators.forEach(each -> each.close(lost));
        }
    }
}
