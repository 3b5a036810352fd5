package org.millrace.gpu;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.OperationGroup;
import org.millrace.Plan;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.Stream;
import org.millrace.cuda.CudaGraph;
import org.millrace.cuda.CudaStream;
import org.millrace.device.Operands;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.GroupFailure;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclException;
import org.millrace.nccl.NcclLibrary;

/**
 * A communicator of libnccl. Its calls block while NCCL connects ranks on their first use; {@link FailureWatch} sees to
 * it that they do not for good.
 */
final class GpuCommunicator implements Communicator {

    private static final Logger LOG = LogManager.getLogger(GpuCommunicator.class);
    /** Kernels leave soon after an abort. */
    private static final Duration ABORT_DEADLINE = Duration.ofSeconds(10);

    private final NcclLibrary library;
    private final NcclCommunicator nccl;
    private final GpuDevice device;
    private final ControlPlane control;
    private final GroupFailure failure;
    private final FailureWatch watch;
    private final Duration stall;
    private final Duration patience;
    private final AtomicBoolean closed = new AtomicBoolean();
    /** Closed before NCCL is: it holds on to what they captured. */
    private final Set<GpuPlan> plans = ConcurrentHashMap.newKeySet();

    GpuCommunicator(NcclLibrary library, NcclCommunicator nccl, GpuDevice device, ControlPlane control,
            GroupFailure failure, Duration stall, Duration patience) {
        this.library = library;
        this.nccl = nccl;
        this.device = device;
        this.control = control;
        this.failure = failure;
        this.stall = stall;
        this.patience = patience;
        watch = new FailureWatch(nccl, failure, stall);
        watch.start();
    }

    @Override
    public int rank() {
        return control.rank();
    }

    @Override
    public int size() {
        return control.size();
    }

    @Override
    public Device device() {
        return device;
    }

    @Override
    public Set<Operation> operations() {
        return EnumSet.allOf(Operation.class);
    }

    @Override
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            Stream stream) {
        CudaStream on = begin(stream);
        operands(Operation.ALL_REDUCE, send, count, receive, count, type, 0);
        call(() -> nccl.allReduce(send, receive, count, type, op, on));
    }

    @Override
    public void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, Stream stream) {
        CudaStream on = begin(stream);
        operands(Operation.ALL_GATHER, send, count, receive, Math.multiplyExact(count, size()), type,
                rank() * count * type.bytes());
        call(() -> nccl.allGather(send, receive, count, type, on));
    }

    @Override
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            Stream stream) {
        CudaStream on = begin(stream);
        operands(Operation.REDUCE_SCATTER, send, Math.multiplyExact(count, size()), receive, count, type,
                -rank() * count * type.bytes());
        call(() -> nccl.reduceScatter(send, receive, count, type, op, on));
    }

    @Override
    public void broadcast(MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.BROADCAST, "root", root);
        if (rank() == root) {
            operands(Operation.BROADCAST, send, count, receive, count, type, 0);
        } else {
            operand(Operation.BROADCAST, "receive", receive, count, type, true);
        }
        call(() -> nccl.broadcast(rank() == root ? send : null, receive, count, type, root, on));
    }

    @Override
    public void reduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op, int root,
            Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.REDUCE, "root", root);
        if (rank() == root) {
            operands(Operation.REDUCE, send, count, receive, count, type, 0);
        } else {
            operand(Operation.REDUCE, "send", send, count, type, false);
        }
        call(() -> nccl.reduce(send, rank() == root ? receive : null, count, type, op, root, on));
    }

    /** As sends and receives of one group, which every NCCL since 2.7 has. */
    @Override
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, Stream stream) {
        CudaStream on = begin(stream);
        long all = Math.multiplyExact(count, size());
        operand(Operation.ALL_TO_ALL, "send", send, all, type, false);
        operand(Operation.ALL_TO_ALL, "receive", receive, all, type, true);
        Operands.checkOverlap(send, all * type.bytes(), receive, all * type.bytes(), Operands.NEVER_IN_PLACE);
        long bytes = count * type.bytes();
        together(() -> {
            for (int peer = 0; peer < size(); peer++) {
                nccl.send(send.asSlice(peer * bytes, bytes), count, type, peer, on);
                nccl.receive(receive.asSlice(peer * bytes, bytes), count, type, peer, on);
            }
        });
    }

    /** As {@link #allToAll}, a group of sends and receives. */
    @Override
    public void gather(MemorySegment send, MemorySegment receive, long count, DataType type, int root, Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.GATHER, "root", root);
        long bytes = count * type.bytes();
        if (rank() == root) {
            operands(Operation.GATHER, send, count, receive, Math.multiplyExact(count, size()), type, rank() * bytes);
        } else {
            operand(Operation.GATHER, "send", send, count, type, false);
        }
        together(() -> {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                nccl.receive(receive.asSlice(peer * bytes, bytes), count, type, peer, on);
            }
            nccl.send(send, count, type, root, on);
        });
    }

    /** As {@link #allToAll}, a group of sends and receives. */
    @Override
    public void scatter(MemorySegment send, MemorySegment receive, long count, DataType type, int root, Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.SCATTER, "root", root);
        long bytes = count * type.bytes();
        if (rank() == root) {
            operands(Operation.SCATTER, send, Math.multiplyExact(count, size()), receive, count, type, -rank() * bytes);
        } else {
            operand(Operation.SCATTER, "receive", receive, count, type, true);
        }
        together(() -> {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                nccl.send(send.asSlice(peer * bytes, bytes), count, type, peer, on);
            }
            nccl.receive(receive, count, type, root, on);
        });
    }

    @Override
    public void send(MemorySegment buffer, long count, DataType type, int peer, Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.SEND_RECEIVE, "peer", peer);
        operand(Operation.SEND_RECEIVE, "send", buffer, count, type, false);
        call(() -> nccl.send(buffer, count, type, peer, on));
    }

    @Override
    public void receive(MemorySegment buffer, long count, DataType type, int peer, Stream stream) {
        CudaStream on = begin(stream);
        checkRank(Operation.SEND_RECEIVE, "peer", peer);
        operand(Operation.SEND_RECEIVE, "receive", buffer, count, type, true);
        call(() -> nccl.receive(buffer, count, type, peer, on));
    }

    @Override
    public void group(Runnable operations) {
        checkOpen();
        Millrace.group(operations);
    }

    private void together(Runnable calls) {
        Millrace.group(() -> call(calls));
    }

    /** As a CUDA graph. */
    @Override
    public Plan plan(Stream stream, Runnable operations) {
        CudaStream on = begin(stream);
        requireNoGroup("a plan is made");
        CudaGraph captured = capture(on, operations);
        try (captured) {
            GpuPlan plan = new GpuPlan(this, captured.instantiate());
            plans.add(plan);
            return plan;
        }
    }

    private CudaGraph capture(CudaStream stream, Runnable operations) {
        stream.beginCapture();
        try {
            group(operations);
        } catch (RuntimeException | Error thrown) {
            try {
                stream.endCapture().close(); // or the stream stays unusable
            } catch (RuntimeException invalid) {
                thrown.addSuppressed(invalid);
            }
            throw thrown;
        }
        return stream.endCapture();
    }

    /** Launches a plan once more. */
    void launch(CudaGraph.Executable graph, Stream stream) {
        CudaStream on = begin(stream);
        requireNoGroup("a plan is launched");
        call(() -> graph.launch(on));
    }

    private void requireNoGroup(String what) {
        if (OperationGroup.isOpen()) {
            throw new IllegalStateException("rank " + rank() + ", " + what + " outside of groups");
        }
    }

    void forget(GpuPlan plan) {
        plans.remove(plan);
    }

    @Override
    public Optional<Communicator> split(int color, int key) {
        checkOpen();
        ControlPlane group = control.split(color, key);
        GroupFailure childFailure = group == null ? failure : new GroupFailure(group);
        try {
            Optional<NcclCommunicator> child = Bounded.call("ncclCommSplit of rank " + rank(), patience, () -> {
                failure.watch();
                failure.throwIfFailed();
            }, () -> nccl.split(color, key, null));
            if (group == null) {
                return Optional.empty();
            }
            device.share(childFailure);
            return Optional.of(
                    new GpuCommunicator(library, child.orElseThrow(), device, group, childFailure, stall, patience));
        } catch (RuntimeException | Error thrown) {
            if (group != null) {
                group.fail(String.valueOf(thrown.getMessage()));
                group.close();
            }
            throw thrown;
        }
    }

    private CudaStream begin(Stream stream) {
        checkOpen();
        return device.own(stream).cuda();
    }

    /** Makes a call of NCCL's, as one of the thread's group if there is one. */
    private void call(Runnable enqueue) {
        OperationGroup.join(library, () -> new GpuGroup(library))
                .map(GpuGroup.class::cast)
                .ifPresent(group -> group.add(this));
        watched(List.of(this), enqueue);
    }

    /**
     * Makes a call of NCCL's, watched. What NCCL refuses poisons its communicators: it may have told some ranks'
     * kernels and not others'.
     */
    static void watched(Collection<GpuCommunicator> communicators, Runnable call) {
        communicators.forEach(each -> each.watch.callBegins());
        try {
            call.run();
        } catch (NcclException refused) {
            communicators.forEach(each -> each.failure.fail(refused));
            communicators.forEach(each -> each.failure.throwIfFailed());
        } catch (IllegalStateException aborted) {
            communicators.forEach(each -> each.failure.throwIfFailed());
            throw aborted;
        } finally {
            communicators.forEach(each -> each.watch.callEnds());
        }
    }

    private void operands(Operation operation, MemorySegment send, long sendCount, MemorySegment receive,
            long receiveCount, DataType type, long inPlace) {
        operand(operation, "send", send, sendCount, type, false);
        operand(operation, "receive", receive, receiveCount, type, true);
        Operands.checkOverlap(send, sendCount * type.bytes(), receive, receiveCount * type.bytes(), inPlace);
    }

    private void operand(Operation operation, String role, MemorySegment segment, long count, DataType type,
            boolean written) {
        String what = "rank " + rank() + ", " + operation.label() + ", " + role;
        Operands.check(what, segment, count, type, written);
        device.checkReach(what, segment, count * type.bytes());
    }

    private void checkRank(Operation operation, String role, int number) {
        if (number < 0 || number >= size()) {
            throw new IllegalArgumentException("rank " + rank() + ", " + operation.label() + ": there is no " + role
                    + " " + number + "; ranks are 0 to " + (size() - 1));
        }
    }

    @Override
    public Registration register(MemorySegment memory) {
        checkOpen();
        return nccl.register(memory)::close;
    }

    private void checkOpen() {
        if (closed.get()) {
            throw new MillraceException("rank " + rank() + ", the communicator is closed");
        }
        failure.throwIfFailed();
    }

    @Override
    public void abort() {
        if (closed.compareAndSet(false, true)) {
            failure.fail(new MillraceException("rank " + rank() + " aborted the communicator"));
            tearDown();
        }
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            if (failure.get() == null && !device.awaitIdle(stall)) {
                failure.fail(new MillraceException("rank " + rank()
                        + " leaves with operations that have not completed within " + stall.toMillis() + " ms"));
            }
            if (failure.get() == null) {
                leaveTogether();
            }
            tearDown();
        }
    }

    /** A rank that left at once would look to its slower neighbours like one that was lost. */
    private void leaveTogether() {
        try {
            control.barrier();
        } catch (MillraceException e) {
            LOG.debug("rank {} leaves alone: {}", rank(), e.getMessage());
            failure.fail(e);
        }
    }

    private void tearDown() {
        watch.stop();
        plans.forEach(GpuPlan::close);
        try {
            if (failure.get() == null) {
                Bounded.call("ncclCommDestroy of rank " + rank(), stall, () -> {}, () -> {
                    nccl.close();
                    return null;
                });
            } else {
                nccl.abort();
                device.awaitIdle(ABORT_DEADLINE);
            }
        } catch (MillraceException late) {
            LOG.warn("rank {}: {}", rank(), late.getMessage());
        } finally {
            device.unshare(failure);
            control.close();
        }
    }
}
