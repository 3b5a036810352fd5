package org.millrace.gpu;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.CommunicatorListener;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.Plan;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaGraph;
import org.millrace.cuda.CudaStream;
import org.millrace.element.Operands;
import org.millrace.failure.RepeatedFailure;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.operation.CallerCheck;
import org.millrace.operation.OperationGroup;
import org.millrace.operation.Required;

/**
 * Communicator over libnccl, which runs all operations. A call of libnccl may block, because NCCL connects ranks at
 * their first operation. {@link NcclWatch} ends calls that do not return.
 */
final class GpuCommunicator implements Communicator, CallerCheck.Checked {

    private static final Logger LOG = LogManager.getLogger(GpuCommunicator.class);
    /** Maximum time to wait after an abort until the running kernels have ended. */
    private static final Duration ABORT_DEADLINE = Duration.ofSeconds(10);

    private final GpuRank member;
    private final NcclCommunicator nccl;
    private final GpuDevice device;
    private final GroupFailure failure;
    private final NcclWatch watch;
    private final Operands operands;
    private final Duration stall;
    private final Duration late;
    private final Duration patience;
    private final LaunchCounts launched;
    /**
     * Whether {@link #launched} counts all operations. The value becomes false when the first plan is recorded, because
     * the operations of a repeated graph are not counted. If the value is false, the counts are too low, so this rank
     * does not send them when it closes. Counts that are too low never make this rank itself fail.
     */
    private volatile boolean counts = true;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final GraphPlans plans;
    private final CallerCheck callers;
    private @Nullable DeviceStream stream;

    private GpuCommunicator(GpuRank member, GpuDevice device, Duration stall, Duration late, Duration patience) {
        this.member = member;
        this.nccl = member.nccl();
        this.device = device;
        this.failure = member.failure();
        this.stall = stall;
        this.late = late;
        this.patience = patience;
        plans = new GraphPlans("rank " + rank(), this::launch);
        callers = new CallerCheck(rank());
        operands = new Operands(rank(), size(), device::checkReach);
        launched = new LaunchCounts(member.control(), failure);
        watch = new NcclWatch(member, launched, stall, late);
        watch.start();
    }

    /**
     * Joins the other ranks of a communicator. {@link GpuRank#prepare} precedes this call and makes the preparations
     * that involve no other rank.
     */
    static Communicator join(GpuRank.Libraries libraries, String rendezvous, int rank, int size,
            Configuration configuration, CommunicatorListener listener) {
        GpuRank member = GpuRank.meet(libraries, rendezvous, rank, size, configuration, listener);
        return new GpuCommunicator(member, new GpuDevice(member.device(), member.failure()),
                configuration.get(Settings.STALL_DEADLINE), configuration.get(Settings.LATE_DEADLINE),
                configuration.get(Settings.CLOSE_DEADLINE));
    }

    @Override
    public int rank() {
        return member.control().rank();
    }

    @Override
    public int size() {
        return member.control().size();
    }

    @Override
    public Device device() {
        return device;
    }

    @Override
    public synchronized DeviceStream stream() {
        checkOpen();
        stream = stream == null ? device.newStream() : stream;
        return stream;
    }

    @Override
    public void barrier(Duration deadline) {
        checkOpen();
        callers.run(() -> failure.meet(deadline));
    }

    @Override
    public CallerCheck callers() {
        return callers;
    }

    private void watched(Runnable call) {
        callers.run(() -> watch.call(call));
    }

    @Override
    public Duration patience() {
        return late.plus(stall);
    }

    @Override
    public Set<Operation> operations() {
        return EnumSet.allOf(Operation.class);
    }

    @Override
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.ALL_REDUCE, send, receive, count, type);
        collective(() -> nccl.allReduce(send, receive, count, type, op, on));
    }

    @Override
    public void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.ALL_GATHER, send, receive, count, type);
        collective(() -> nccl.allGather(send, receive, count, type, on));
    }

    @Override
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.REDUCE_SCATTER, send, receive, count, type);
        collective(() -> nccl.reduceScatter(send, receive, count, type, op, on));
    }

    @Override
    public void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.BROADCAST, send, receive, count, type, root);
        collective(() -> nccl.broadcast(rank() == root ? send : null, receive, count, type, root, on));
    }

    @Override
    public void reduce(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, ReduceOp op,
            int root, DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.REDUCE, send, receive, count, type, root);
        collective(() -> nccl.reduce(send, rank() == root ? receive : null, count, type, op, root, on));
    }

    /** Runs as a group of sends and receives, because every NCCL release since 2.7 supports these. */
    @Override
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.ALL_TO_ALL, send, receive, count, type);
        together(() -> {
            for (int peer = 0; peer < size(); peer++) {
                nccl.send(part(send, peer, count, type), count, type, peer, on);
                nccl.receive(part(receive, peer, count, type), count, type, peer, on);
            }
        });
    }

    /** Runs as a group of sends and receives, like {@link #allToAll}. */
    @Override
    public void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.GATHER, send, receive, count, type, root);
        together(() -> {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                nccl.receive(part(receive, peer, count, type), count, type, peer, on);
            }
            nccl.send(send, count, type, root, on);
        });
    }

    /** Runs as a group of sends and receives, like {@link #allToAll}. */
    @Override
    public void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.check(Operation.SCATTER, send, receive, count, type, root);
        together(() -> {
            for (int peer = 0; rank() == root && peer < size(); peer++) {
                nccl.send(part(send, peer, count, type), count, type, peer, on);
            }
            nccl.receive(receive, count, type, root, on);
        });
    }

    private static MemorySegment part(MemorySegment all, int number, long count, DataType type) {
        return all.asSlice(number * count * type.bytes(), count * type.bytes());
    }

    @Override
    public void send(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.checkTransfer(true, buffer, count, type, peer);
        if (counts) {
            launched.transfer(peer, true);
        }
        watched(() -> nccl.send(buffer, count, type, peer, on));
    }

    @Override
    public void receive(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        CudaStream on = begin(stream);
        operands.checkTransfer(false, buffer, count, type, peer);
        if (counts) {
            launched.transfer(peer, false);
        }
        watched(() -> nccl.receive(buffer, count, type, peer, on));
    }

    @Override
    public void group(Runnable operations) {
        checkOpen();
        callers.run(() -> Millrace.group(operations));
    }

    private void together(Runnable calls) {
        Millrace.group(() -> collective(calls));
    }

    private void collective(Runnable call) {
        if (counts) {
            launched.collective();
        }
        watched(call);
    }

    /** Records the operations as a CUDA graph. */
    @Override
    public Plan plan(DeviceStream stream, Runnable operations) {
        CudaStream on = begin(stream);
        Required.argument("plan", "function", operations);
        counts = false;
        return plans.capture(on, () -> group(operations));
    }

    @Override
    public Optional<Communicator> split(int color, int key) {
        checkOpen();
        return member.split(color, key).map(child -> {
            device.share(child.failure());
            return new GpuCommunicator(child, device, stall, late, patience);
        });
    }

    private void launch(CudaGraph.Executable graph, DeviceStream stream) {
        CudaStream on = begin(stream);
        watched(() -> graph.launch(on));
    }

    private CudaStream begin(DeviceStream stream) {
        checkOpen();
        return device.own(stream).cuda();
    }

    @Override
    public Registration register(MemorySegment memory) {
        checkOpen();
        return nccl.register(memory);
    }

    private void checkOpen() {
        if (closed.get()) {
            throw new MillraceException("rank " + rank() + ", the communicator is closed");
        }
        failure.throwIfFailed();
    }

    /**
     * Returns the first failure of the communicator, without querying NCCL. {@link NcclWatch} polls NCCL's own error.
     */
    @Override
    public Optional<MillraceException> asyncError() {
        return Optional.ofNullable(failure.get()).map(thrown -> RepeatedFailure.of(thrown.getMessage(), thrown));
    }

    @Override
    public void abort(@Nullable Throwable reason) {
        if (closed.compareAndSet(false, true)) {
            failure.fail(new AbortedException(rank(), reason));
            tearDown(true);
        }
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            long begun = System.nanoTime();
            if (failure.get() == null && counts) {
                launched.close();
            }
            DeadlineException givenUp = null;
            if (failure.get() == null && !device.awaitIdle(patience)) {
                String what = "rank " + rank() + " closes the communicator and gives up operations that have not"
                        + " completed within " + patience.toMillis() + " ms (MILLRACE_CLOSE_DEADLINE)";
                failure.fail(new AbortedException(what, rank(), CommunicatorException.NO_RANK, null, null));
                givenUp = new DeadlineException(what, rank(), CommunicatorException.NO_RANK, null, null);
            }
            // This rank waits, so that all ranks leave together. If this rank left immediately, slower peers could not
            // distinguish this rank from a lost rank.
            MillraceException alone = failure.get() != null ? null : member.control().leaveTogether(patience, begun);
            if (alone instanceof DeadlineException late) {
                givenUp = late;
            } else if (alone != null) {
                LOG.info("rank {} leaves without the other ranks: {}", rank(), alone.getMessage());
            }
            tearDown(alone == null);
            if (givenUp != null) {
                throw givenUp;
            }
        }
    }

    /**
     * Stops the watch and frees NCCL's communicator.
     *
     * @param together whether the other ranks also leave now. Only then may NCCL's communicator be destroyed, because
     *                 NCCL waits for the other ranks. The communicator is aborted in three cases: {@code together} is
     *                 false, the communicator has failed, or the watch is still in an NCCL call
     */
    private void tearDown(boolean together) {
        boolean isQuiet = watch.stop();
        plans.close();
        try {
            if (failure.get() == null && together && isQuiet) {
                GpuRank.bounded("ncclCommDestroy of rank " + rank(), patience, () -> {}, () -> {
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
            if (stream != null) {
                stream.close();
            }
            device.unshare(failure);
            member.control().close();
        }
    }

    /**
     * The plans of a communicator. Each plan contains operations of libnccl, captured as a CUDA graph. NCCL keeps the
     * data of the graph's kernels and proxies until the graph is destroyed. All graphs must therefore be destroyed
     * before NCCL's communicator.
     */
    static final class GraphPlans implements AutoCloseable {

        private final String who;
        private final BiConsumer<CudaGraph.Executable, DeviceStream> launcher;
        private final Set<GraphPlan> plans = ConcurrentHashMap.newKeySet();

        /**
         * @param who      name of the rank in messages
         * @param launcher function that launches a graph in a stream, in the same way as the communicator launches
         *                 operations
         */
        GraphPlans(String who, BiConsumer<CudaGraph.Executable, DeviceStream> launcher) {
            this.who = who;
            this.launcher = launcher;
        }

        /** Records the operations as a plan. No operation runs now. */
        Plan capture(CudaStream stream, Runnable operations) {
            requireNoGroup("a plan is made");
            CudaGraph captured = graph(stream, operations);
            try (captured) {
                GraphPlan plan = new GraphPlan(captured.instantiate());
                plans.add(plan);
                return plan;
            }
        }

        private static CudaGraph graph(CudaStream stream, Runnable operations) {
            stream.beginGraph();
            try {
                OperationGroup.record(operations);
            } catch (RuntimeException | Error thrown) {
                try {
                    // Without this call, the stream would stay in the capture and could not be used.
                    stream.endGraph().close();
                } catch (RuntimeException invalid) {
                    thrown.addSuppressed(invalid);
                }
                throw thrown;
            }
            return stream.endGraph();
        }

        private void requireNoGroup(String what) {
            if (OperationGroup.isOpen()) {
                throw new IllegalStateException(who + ", " + what + " outside of groups");
            }
        }

        @Override
        public void close() {
            plans.forEach(GraphPlan::close);
        }

        private final class GraphPlan implements Plan {

            private final CudaGraph.Executable graph;
            private boolean closed;

            GraphPlan(CudaGraph.Executable graph) {
                this.graph = graph;
            }

            @Override
            public synchronized void launch(DeviceStream stream) {
                if (closed) {
                    throw new IllegalStateException(who + ", the plan is closed");
                }
                requireNoGroup("a plan is launched");
                launcher.accept(graph, stream);
            }

            @Override
            public void close() {
                synchronized (this) {
                    closed = true;
                }
                plans.remove(this);
                graph.close();
            }
        }
    }
}
