package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.ChannelWork;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
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
import org.millrace.Route;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.Recovery;
import org.millrace.bootstrap.RemoteFailure;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.EmulatedKernel;
import org.millrace.device.EmulatedStream;
import org.millrace.device.FunctionTable;
import org.millrace.device.WorkLauncher;
import org.millrace.element.Operands;
import org.millrace.engine.LaunchQueue.Recorded;
import org.millrace.engine.PlannedOperation.Collective;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.failure.RepeatedFailure;
import org.millrace.operation.CallerCheck;
import org.millrace.operation.OperationGroup;
import org.millrace.operation.Required;
import org.millrace.operation.UserTrace;

/**
 * Communicator on the emulated device, as the program calls it. It checks each operation, passes it to a planner, and
 * queues the planned operation. Millrace implements the kernels and the proxies. The data can pass through any network
 * of {@code org.millrace.net}.
 */
final class EngineCommunicator implements Communicator, CallerCheck.Checked {

    private static final Logger LOG = LogManager.getLogger(EngineCommunicator.class);
    private final CommunicatorParts parts;
    private final CommunicatorFailure failure;
    private final Operands operands;
    private final CollectivePlanner collectivePlanner;
    private final TransferPlanner transferPlanner;
    private final WorkLauncher launcher;
    /**
     * Communicators that were split from this communicator and that the program still references. An abort also aborts
     * them.
     */
    private final Set<EngineCommunicator> children = Collections.newSetFromMap(new WeakHashMap<>());
    private final LaunchQueue launches;
    /** Operations of the plan that is being made; null if none is being made. Guarded by this communicator's lock. */
    private LaunchQueue.@Nullable Group recording;
    private final Routes routes;
    private final CallGuard guard;
    private final CallerCheck callers;
    /** Completes when the thread that closed {@link #guard} has released the resources, or has failed to do so. */
    private final CompletableFuture<Void> released = new CompletableFuture<>();
    private @Nullable EmulatedStream stream;

    EngineCommunicator(CommunicatorParts parts) {
        this.parts = parts;
        DeviceCommunicator device = parts.device;
        EngineOptions options = parts.options;
        this.failure = parts.failure;
        this.guard = new CallGuard(rank(), parts.threads.device, failure);
        this.callers = new CallerCheck(rank());
        this.operands = new Operands(rank(), size(), parts.threads::checkReach);
        this.routes = new Routes(parts.connectors);
        this.collectivePlanner = new CollectivePlanner(device, options, parts.registrations, parts.collNet);
        this.transferPlanner = new TransferPlanner(rank(), parts.registrations, options);
        this.launcher = parts.add(new WorkLauncher(parts.threads.device, device, FunctionTable.STANDARD, failure,
                failure::fail, parts::proxiesStand, parts.attendance, options.longestOperation()));
        OperationTrace trace = parts.trace.operations(parts.threads.device);
        PlanLauncher planLauncher = new PlanLauncher(launcher,
                new Announcer(device, parts.connectors, routes, parts.launched, trace), trace);
        this.launches = new LaunchQueue(guard.label(""), parts.threads.device, device, options.workArgumentBytes(),
                transferPlanner, planLauncher, guard::checkOpen, parts.registrations);
        Topology.connectRings(device, parts.connectors, options.channels());
    }

    /** Returns the state that kernels see. It also shows the host which work kernels have begun and completed. */
    DeviceCommunicator deviceCommunicator() {
        return parts.device;
    }

    @Override
    public int rank() {
        return parts.control.rank();
    }

    @Override
    public int size() {
        return parts.control.size();
    }

    @Override
    public Device device() {
        return parts.threads.device;
    }

    @Override
    public synchronized DeviceStream stream() {
        guard.checkOpen();
        stream = stream == null ? parts.threads.device.newStream() : stream;
        return stream;
    }

    @Override
    public void barrier(Duration deadline) {
        callers.run(() -> {
            guard.checkOpen();
            failure.meet(deadline);
        });
    }

    @Override
    public CallerCheck callers() {
        return callers;
    }

    @Override
    public Duration patience() {
        return parts.options.longestOperation();
    }

    @Override
    public Set<Operation> operations() {
        return EnumSet.allOf(Operation.class);
    }

    @Override
    public void allReduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        collective(Operation.ALL_REDUCE, send, receive, count, type, op, rank(), stream);
    }

    @Override
    public void allGather(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        collective(Operation.ALL_GATHER, send, receive, count, type, ReduceOp.SUM, rank(), stream);
    }

    @Override
    public void reduceScatter(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op,
            DeviceStream stream) {
        collective(Operation.REDUCE_SCATTER, send, receive, count, type, op, rank(), stream);
    }

    @Override
    public void broadcast(MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        collective(Operation.BROADCAST, send, receive, count, type, ReduceOp.SUM, root, stream);
    }

    @Override
    public void reduce(MemorySegment send, MemorySegment receive, long count, DataType type, ReduceOp op, int root,
            DeviceStream stream) {
        collective(Operation.REDUCE, send, receive, count, type, op, root, stream);
    }

    /** @param root root of the operation; this rank if the operation has no root */
    private void collective(Operation operation, MemorySegment send, MemorySegment receive, long count, DataType type,
            ReduceOp op, int root, DeviceStream stream) {
        Required.argument(operation.label(), "argument op", op);
        boolean isOutermost = callers.enter();
        try {
            guard.checkOpen(stream);
            operands.check(operation, send, receive, count, type, root);
            boolean reads = !operation.isSentByRoot() || rank() == root;
            boolean writes = !operation.isReceivedByRoot() || rank() == root;
            Collective asked =
                    new Collective(operation, count, type, op, reads ? send : null, writes ? receive : null, root);
            if (!launchAlone(asked, stream)) {
                PlannedCollective planned = collectivePlanner.plan(asked);
                issue(group -> group.add(planned, stream));
            }
            parts.threads.device.catchUp(stream);
        } catch (RuntimeException thrown) {
            throw UserTrace.from(thrown);
        } finally {
            callers.exit(isOutermost);
        }
    }

    /**
     * Launches a collective directly, without the preparations that plans, captures and groups of operations need.
     * Returns false inside a group, a plan or a capture.
     */
    private synchronized boolean launchAlone(Collective asked, DeviceStream stream) {
        if (!isAlone(stream)) {
            return false;
        }
        guard.checkOpen();
        launches.launchNow(asked, collectivePlanner, stream);
        return true;
    }

    private boolean isAlone(DeviceStream stream) {
        return !OperationGroup.isOpen() && recording == null && !stream.isCapturing();
    }

    @Override
    public void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type, DeviceStream stream) {
        guard.checkOpen(stream);
        operands.check(Operation.ALL_TO_ALL, send, receive, count, type);
        issue(group -> transfers(group, stream).allToAll(send, receive, count, type));
    }

    @Override
    public void gather(MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        guard.checkOpen(stream);
        operands.check(Operation.GATHER, send, receive, count, type, root);
        issue(group -> transfers(group, stream).gather(send, receive, count, type, root));
    }

    @Override
    public void scatter(MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            DeviceStream stream) {
        guard.checkOpen(stream);
        operands.check(Operation.SCATTER, send, receive, count, type, root);
        issue(group -> transfers(group, stream).scatter(send, receive, count, type, root));
    }

    @Override
    public void send(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        guard.checkOpen(stream);
        operands.checkTransfer(true, buffer, count, type, peer);
        transfer(true, buffer, count, type, peer, stream);
    }

    @Override
    public void receive(MemorySegment buffer, long count, DataType type, int peer, DeviceStream stream) {
        guard.checkOpen(stream);
        operands.checkTransfer(false, buffer, count, type, peer);
        transfer(false, buffer, count, type, peer, stream);
    }

    private void transfer(boolean sends, MemorySegment buffer, long count, DataType type, int peer,
            DeviceStream stream) {
        boolean isOutermost = callers.enter();
        try {
            if (!launchAlone(sends, buffer, count, type, peer, stream)) {
                issue(group -> add(group, sends, buffer, count, type, peer, stream));
            }
        } catch (RuntimeException thrown) {
            throw UserTrace.from(thrown);
        } finally {
            callers.exit(isOutermost);
        }
    }

    /**
     * Launches a transfer directly. Returns false inside a group, a plan or a capture. Also returns false for a
     * transfer of this rank to itself, because such a transfer must wait for its other half.
     */
    private synchronized boolean launchAlone(boolean sends, MemorySegment buffer, long count, DataType type, int peer,
            DeviceStream stream) {
        if (peer == rank() || !isAlone(stream)) {
            return false;
        }
        guard.checkOpen();
        SendOrReceive asked = transferPlanner.transfer(sends, buffer, count, type, peer);
        routes.direct(asked.read());
        launches.launchNow(asked, stream);
        return true;
    }

    private TransferPattern transfers(LaunchQueue.Group group, DeviceStream stream) {
        return new TransferPattern(rank(), size(),
                (sends, buffer, count, type, peer) -> add(group, sends, buffer, count, type, peer, stream));
    }

    private void add(LaunchQueue.Group group, boolean sends, MemorySegment buffer, long count, DataType type, int peer,
            DeviceStream stream) {
        SendOrReceive transfer = transferPlanner.transfer(sends, buffer, count, type, peer);
        routes.direct(transfer.read());
        group.add(transfer, stream);
    }

    @Override
    public void group(Runnable operations) {
        guard.checkOpen();
        callers.run(() -> Millrace.group(operations));
    }

    @Override
    public Plan plan(DeviceStream stream, Runnable operations) {
        guard.checkOpen(stream);
        Required.argument("plan", "function", operations);
        synchronized (this) {
            guard.requireNoGroup("a plan is made", recording != null);
            guard.requireNoCapture("a plan is made", stream, List.of());
            recording = launches.new Group();
            try {
                OperationGroup.record(operations);
                Recorded recorded = recording.record(stream);
                recorded.kernels().forEach(kernel -> launcher.keep(kernel.kernel()));
                return new EnginePlan(recorded);
            } finally {
                recording = null;
            }
        }
    }

    /**
     * Plan of operations. The work items of the operations are stored once, in memory that remains allocated, and are
     * launched repeatedly.
     */
    private final class EnginePlan implements Plan {

        private final Recorded recorded;

        EnginePlan(Recorded recorded) {
            this.recorded = recorded;
        }

        @Override
        public void launch(DeviceStream stream) {
            guard.checkOpen(stream);
            synchronized (EngineCommunicator.this) {
                guard.requireNoGroup("a plan is launched", recording != null);
                guard.checkOpen();
                recorded.others().forEach(parts.threads.device::check);
                guard.requireNoCapture("a plan is launched", stream, recorded.others());
                launches.launch(recorded, stream);
            }
        }

        @Override
        public void close() {
            recorded.kernels().forEach(kernel -> launcher.release(kernel.kernel()));
        }
    }

    @Override
    public synchronized Registration register(MemorySegment memory) {
        guard.checkOpen();
        operands.checkRegistered(memory);
        return parts.registrations.add(memory, () -> {
            if (!launcher.awaitKernels()) {
                throw new MillraceException(
                        guard.label("a kernel does not leave the device, and registered memory must not be freed"),
                        failure.get());
            }
            parts.stopProxiesAfterFailure();
        });
    }

    @Override
    public synchronized Optional<Communicator> split(int color, int key) {
        guard.checkOpen();
        ControlPlane group = parts.control.split(color, key);
        if (group == null) {
            return Optional.empty();
        }
        EngineCommunicator child = EngineProvider.make(group, parts.configuration, parts.threads);
        synchronized (children) {
            children.add(child);
        }
        return Optional.of(child);
    }

    @Override
    public Communicator shrink() {
        return shrink(parts.options.connectDeadline());
    }

    @Override
    public Communicator shrink(Duration deadline) {
        if (!Required.argument("shrink", "deadline", deadline).isPositive()) {
            throw new IllegalArgumentException(
                    guard.label("shrink: the deadline " + deadline + " must be more than 0"));
        }
        long begun = System.nanoTime();
        return callers.call(() -> {
            parts.threads.device.checkCaller();
            requireRecoverable();
            List<CompletableFuture<Void>> releases = new ArrayList<>();
            // Other threads release resources, so that a release does not delay the agreement.
            Executor release = task -> releases.add(CompletableFuture.runAsync(task, this::startRelease));
            if (guard.close()) {
                try {
                    failure.fail(new AbortedException("rank " + rank() + " shrinks the communicator", rank(),
                            CommunicatorException.NO_RANK, null, null));
                    abortChildren(failure.get());
                } finally {
                    release.execute(this::tearDown);
                }
            }
            try (Recovery recovery = parts.recovery) {
                return recovery.shrink(deadline, begun, control -> {
                    Throwable thrown = released.copy()
                            .orTimeout(control.setUpTime().toNanos(), TimeUnit.NANOSECONDS)
                            .handle((done, why) -> why)
                            .join();
                    if (thrown != null) {
                        control.close();
                        throw new MillraceException(guard.label("shrink: the release failed: " + thrown), thrown);
                    }
                    // The argument null requests new threads for the new communicator. With the old threads, the new
                    // communicator would also use the old memory, which excluded ranks can still read.
                    return EngineProvider.assemble(control, parts.configuration, null, release);
                });
            } finally {
                // Awaits only the release of this communicator. Failed groups have resources of their own, and their
                // release may take longer than the other ranks wait.
                awaitRelease();
                CompletableFuture.allOf(releases.toArray(new CompletableFuture<?>[0])).whenComplete((done, thrown) -> {
                    if (thrown != null) {
                        LOG.warn("rank {}: shrink: a release failed", rank(), thrown);
                    }
                });
            }
        });
    }

    private void startRelease(Runnable task) {
        try {
            Thread.ofPlatform().daemon().name("release-" + rank()).start(task);
        } catch (OutOfMemoryError noThread) {
            // The release on this thread delays the agreement. Without the release, a later call would wait forever.
            task.run();
        }
    }

    private void awaitRelease() {
        released.exceptionally(thrown -> null).join();
    }

    @Override
    public boolean agree(boolean value) {
        return callers.call(() -> {
            parts.threads.device.checkCaller();
            requireRecoverable();
            try {
                return parts.recovery.agree(value);
            } finally {
                if (parts.recovery.isClosed() && guard.isClosed()) {
                    awaitRelease(); // Another thread may still abort the communicator.
                }
            }
        });
    }

    private void requireRecoverable() {
        if (parts.recovery.isClosed()) {
            if (guard.isClosed()) {
                awaitRelease(); // Another thread may still abort the communicator.
            }
            throw new AbortedException(
                    guard.label("the communicator was closed, aborted or shrunk before, so this rank"
                            + " counts as dead and cannot continue with the others; it can join another group"),
                    rank(), CommunicatorException.NO_RANK, null, null);
        }
    }

    /**
     * Aborts the communicators that were split from this communicator, so that their kernels end, too
     * ({@code childAbortFlag} of NCCL).
     */
    private void abortChildren(@Nullable Throwable reason) {
        List<EngineCommunicator> all;
        synchronized (children) {
            all = List.copyOf(children);
        }
        for (EngineCommunicator child : all) {
            if (!child.guard.isClosed()) {
                child.failure.fail(new AbortedException(
                        "rank " + child.rank() + ": the communicator that this one was split from was aborted"
                                + (reason == null ? "" : ": " + reason),
                        child.rank(), CommunicatorException.NO_RANK, null, reason));
            }
            child.abortChildren(reason);
        }
    }

    @Override
    public Optional<MillraceException> asyncError() {
        launcher.poll();
        return Optional.ofNullable(failure.get()).map(thrown -> RepeatedFailure.of(thrown.getMessage(), thrown));
    }

    @Override
    public synchronized Optional<Route> route() {
        return routes.last();
    }

    @Override
    public List<ChannelWork> recentWork() {
        return parts.device.recentWork();
    }

    /**
     * Launches operations immediately. If the thread has an open group of operations, the end of the group launches
     * them instead. If an operation throws, the operations issued before it are launched nevertheless, because the
     * other ranks rely on them.
     */
    private void issue(Consumer<LaunchQueue.Group> operations) {
        callers.run(() -> issueOne(operations));
    }

    private synchronized void issueOne(Consumer<LaunchQueue.Group> operations) {
        guard.checkOpen();
        if (recording != null) {
            operations.accept(recording);
            return;
        }
        boolean isOpen = OperationGroup.isOpen();
        LaunchQueue.Group group =
                isOpen ? (LaunchQueue.Group) OperationGroup.join(this, () -> launches.new Group()).orElseThrow()
                        : launches.new Group();
        try {
            operations.accept(group);
        } finally {
            if (!isOpen) {
                group.prepare(true);
                group.launch();
            }
        }
    }

    @Override
    public void abort(@Nullable Throwable reason) {
        // An operation that fails aborts the communicator before its call returns. The recovery then stays open,
        // because the program may shrink the communicator. An abort by the program closes the recovery.
        boolean isRecoverable = reason instanceof CommunicatorException && callers.isInCall();
        boolean isFirst = guard.close();
        try (ControlPlane _ = isRecoverable ? null : parts.control) {
            // The close of the recovery also ends a call of shrink() on another thread. The close may take two seconds,
            // so the ranks learn of the failure first, and the release follows.
            try (Recovery _ = isRecoverable ? null : parts.recovery) {
                if (isFirst) {
                    abortChildren(reason);
                    parts.failure.fail(new AbortedException(rank(), reason));
                }
            } finally {
                if (isFirst) {
                    tearDown();
                }
            }
        }
    }

    @Override
    public void close() {
        try (Recovery _ = parts.recovery) { // also ends a call of shrink() on another thread
            if (guard.close()) {
                try {
                    leave();
                } finally {
                    released.complete(null);
                    parts.control.close();
                }
            } else if (parts.failure.get() != null) {
                // An abort that permits a recovery leaves the control plane open. If there is no failure, another
                // thread may still be in close() and need the control plane.
                parts.control.close();
            }
        }
    }

    /**
     * Waits for the operations in progress, and for the other ranks to leave. Then releases all resources.
     *
     * @throws DeadlineException if operations were given up or another rank did not close in time; thrown after all
     *                           resources are released
     */
    private void leave() {
        Duration patience = parts.options.closeDeadline();
        long begun = System.nanoTime();
        launcher.stopLaunching();
        if (parts.failure.get() == null) {
            parts.launched.close();
        }
        DeadlineException givenUp = parts.failure.get() == null ? giveUpLate(launcher.drain(patience), patience) : null;
        // If this rank left without waiting for slower peers, these peers could not distinguish this rank from a lost
        // rank.
        MillraceException alone = parts.failure.get() == null ? parts.control.leaveTogether(patience, begun) : null;
        if (alone != null) {
            parts.failure.watch(); // A failure may have ended the wait.
            Throwable told = parts.failure.get();
            if (told != null) {
                LOG.warn("rank {} closes the communicator, and the other ranks still used it: {}", rank(),
                        told.getMessage());
            } else if (alone instanceof DeadlineException late) {
                givenUp = late;
            } else {
                LOG.info("rank {} leaves without the other ranks: {}", rank(), alone.getMessage());
            }
        }
        tearDown();
        if (givenUp != null) {
            throw givenUp;
        }
    }

    /**
     * Gives up operations that have not completed in time, on this rank and on the other ranks. Returns null if all
     * have completed.
     */
    private @Nullable DeadlineException giveUpLate(List<EmulatedKernel> late, Duration patience) {
        if (late.isEmpty()) {
            return null;
        }
        String first = late.getFirst().toString();
        String what = "rank " + rank() + " closes the communicator and gives up " + late.size()
                + (late.size() == 1 ? " operation that has" : " operations that have") + " not completed within "
                + patience.toMillis() + " ms (MILLRACE_CLOSE_DEADLINE), first of all "
                + RemoteFailure.withoutRank(rank(), first);
        parts.failure.fail(new AbortedException(what, rank(), CommunicatorException.NO_RANK, first, null));
        return new DeadlineException(what, rank(), CommunicatorException.NO_RANK, first, null);
    }

    private void tearDown() {
        try {
            if (stream != null) {
                stream.closeWhenDone();
            }
            if (launcher.drain()) {
                parts.tearDown();
            } else {
                parts.leaveOpen("a kernel did not leave the device");
            }
            released.complete(null);
        } catch (RuntimeException | Error thrown) {
            released.completeExceptionally(thrown);
            throw thrown;
        }
    }
}
