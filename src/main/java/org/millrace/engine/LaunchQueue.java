package org.millrace.engine;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.abi.kernel.WorkType;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.EmulatedDevice;
import org.millrace.device.EmulatedStream;
import org.millrace.device.PlanBuilder;
import org.millrace.engine.PlanLauncher.PlannedKernel;
import org.millrace.engine.PlannedOperation.Collective;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.PlannedOperation.PlannedTransfer;
import org.millrace.engine.PlannedOperation.Request;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.operation.HeapAddress;
import org.millrace.operation.OperationGroup;

/**
 * Launches a communicator's operations: single operations immediately, and the operations of a {@link Group} when the
 * outermost group of the calling thread ends. Several threads may have open groups at the same time. The groups must
 * end in the same order on all ranks.
 */
final class LaunchQueue {

    /** Maximum size of the work items of a replayed kernel, in bytes. These items are not in the work FIFO. */
    private static final int REPLAYED_BYTES = 1 << 20;

    private final String who;
    private final EmulatedDevice device;
    private final DeviceCommunicator communicator;
    private final TransferPlanner transfers;
    private final PlanLauncher launcher;
    private final Runnable check;
    /** Builder of the kernels of single operations. Used under the communicator's lock, like {@link #recent}. */
    private final PlanBuilder single;
    /** Builder of a group's kernels. Used under this object's lock, like {@link #replayed} and {@link #operations}. */
    private final PlanBuilder once;
    private final PlanBuilder replayed;
    /** Operations of the group's kernel that is being planned. */
    private List<PlannedOperation> operations = new ArrayList<>(1);
    private final RecentKernels recent;

    /**
     * @param argumentBytes maximum size of a kernel's arguments in bytes; ignored if it is too small for one batch of
     *                      each channel
     * @param check         check that throws if the communicator has failed or is closed, and so refuses a launch
     * @param registrations registered memory; a plan is valid only for the memory registered when it was made
     */
    public LaunchQueue(String who, EmulatedDevice device, DeviceCommunicator communicator, int argumentBytes,
            TransferPlanner transfers, PlanLauncher launcher, Runnable check, Registrations registrations) {
        this.check = check;
        this.recent = new RecentKernels(registrations);
        this.who = who;
        this.device = device;
        this.communicator = communicator;
        this.transfers = transfers;
        this.launcher = launcher;
        int leastBytes = KernelArguments.BYTES + communicator.channels() * WorkBatch.BYTES;
        int mostBytes = Math.max(leastBytes, argumentBytes);
        this.single = new PlanBuilder(who, mostBytes, communicator.fifo().bytes() / 2);
        this.once = new PlanBuilder(who, mostBytes, communicator.fifo().bytes() / 2);
        this.replayed = new PlanBuilder(who, mostBytes, REPLAYED_BYTES);
    }

    /**
     * Launches a single collective. Most programs repeat their collectives, so the plans of recent collectives are kept
     * and launched again for equal collectives. Must not be called in a group of operations.
     *
     * @param stream stream that is not being captured
     */
    public void launchNow(Collective asked, CollectivePlanner planner, DeviceStream stream) {
        PlannedKernel kernel = recent.find(asked);
        if (kernel == null) {
            PlannedCollective planned = planner.plan(asked);
            single.collective(planned.work(), planned.function(), planned, asked.send(), asked.receive());
            kernel = new PlannedKernel(who, single.finish(communicator.address(), false), List.of(planned));
            if (!HeapAddress.isOf(asked.send()) && !HeapAddress.isOf(asked.receive())) {
                // A kernel with an operand on the heap is not kept, for two reasons. Each operation has new addresses
                // for such an operand, so no later operation would equal this operation. The kept kernel would also
                // keep the program's array reachable.
                recent.keep(asked, kernel);
            }
        }
        launcher.launch(kernel, stream);
    }

    /**
     * Launches a single send or receive with another rank. The kernel is kept, like the kernel of a single collective.
     * Must not be called in a group of operations.
     */
    public void launchNow(SendOrReceive asked, DeviceStream stream) {
        PlannedKernel kernel = recent.find(asked);
        if (kernel == null) {
            SendOrReceive send = asked.sends() ? asked : null;
            SendOrReceive receive = asked.sends() ? null : asked;
            PointToPointWork work = transfers.work(send, receive);
            PlannedTransfer planned = new PlannedTransfer(work, send, receive);
            single.pointToPoint(work, TransferPlanner.FUNCTION, 0, planned, asked.buffer());
            kernel = new PlannedKernel(who, single.finish(communicator.address(), false), List.of(planned));
            if (!HeapAddress.isOf(asked.buffer())) {
                recent.keep(asked, kernel);
            }
        }
        launcher.launch(kernel, stream);
    }

    /**
     * Kernels that can be launched more than once.
     *
     * @param others streams that the operations name, except the stream of the recording. In a launch, the launch's own
     *               stream replaces the stream of the recording
     */
    public record Recorded(List<PlannedKernel> kernels, List<DeviceStream> others) {
    }

    /**
     * Launches recorded kernels on a stream. The kernels wait for earlier work in {@link Recorded#others}. Later work
     * in these streams waits for the kernels.
     */
    public void launch(Recorded recorded, DeviceStream stream) {
        List<DeviceStream> used = new ArrayList<>(List.of(stream));
        recorded.others.stream().filter(other -> other != stream).forEach(used::add);
        new GroupLaunch(device, launcher, recorded.kernels, used, true, null).launch();
    }

    /**
     * Operations that are launched together: a thread's open group, a plan, or the transfers of one call. Collectives
     * run first, in the order of their calls. Transfers (sends and receives) follow, in the order of
     * {@link TransferSchedule}. Used by one thread.
     */
    final class Group implements OperationGroup.Part {

        private final List<PlannedCollective> collectives = new ArrayList<>();
        private final TransferSchedule schedule = new TransferSchedule(communicator.rank(), communicator.ranks());
        /** Streams that the operations name, without duplicates. A list is enough for few streams. */
        private final List<DeviceStream> streams = new ArrayList<>(1);
        private final SelfTransfers ownTransfers = new SelfTransfers(who);
        private @Nullable GroupLaunch prepared;

        public void add(PlannedCollective collective, DeviceStream stream) {
            collectives.add(collective);
            uses(stream);
        }

        /**
         * Adds a transfer. A send from this rank to this rank waits in this group until the matching receive is added,
         * and vice versa.
         */
        public void add(SendOrReceive transfer, DeviceStream stream) {
            if (transfer.peer() == communicator.rank()) {
                SendOrReceive other = ownTransfers.other(transfer, stream);
                if (other == null) {
                    return;
                }
                schedule.add(other);
            }
            schedule.add(transfer);
            uses(stream);
        }

        private void uses(DeviceStream stream) {
            if (!streams.contains(stream)) {
                streams.add(stream);
            }
        }

        @Override
        public void prepare(boolean alone) {
            if (!streams.isEmpty()) {
                boolean captured = device.isCapturing(streams);
                prepared = new GroupLaunch(device, launcher, plans(this, captured ? replayed : once, captured), streams,
                        alone, captured ? check : null);
            }
        }

        @Override
        public boolean launch() {
            if (prepared != null && !prepared.launch()) {
                return false;
            }
            ownTransfers.requireNone();
            return true;
        }

        /** Creates kernels from the added operations. The kernels can be launched more than once. */
        public Recorded record(DeviceStream stream) {
            ownTransfers.requireNone();
            List<DeviceStream> others = streams.stream().filter(used -> used != stream).toList();
            return new Recorded(plans(this, replayed, true), others);
        }
    }

    private synchronized List<PlannedKernel> plans(Group group, PlanBuilder builder, boolean replay) {
        List<PlannedKernel> plans = new ArrayList<>(1);
        for (PlannedCollective each : group.collectives) {
            finishIfFull(builder, WorkType.COLLECTIVE, each.work().channelHigh() + 1, replay, plans);
            builder.collective(each.work(), each.function(), each, each.asked().send(), each.asked().receive());
            operations.add(each);
        }
        group.schedule.drain((round, send, receive) -> {
            PointToPointWork work = transfers.work(send, receive);
            PlannedTransfer each = new PlannedTransfer(work, send, receive);
            finishIfFull(builder, WorkType.POINT_TO_POINT, Math.max(work.sendChannels(), work.receiveChannels()),
                    replay, plans);
            builder.pointToPoint(work, TransferPlanner.FUNCTION, round, each, send == null ? null : send.buffer(),
                    receive == null ? null : receive.buffer());
            operations.add(each);
        });
        if (!builder.isEmpty()) {
            plans.add(finish(builder, replay));
        }
        return plans;
    }

    private void finishIfFull(PlanBuilder builder, WorkType type, int channels, boolean replay,
            List<PlannedKernel> plans) {
        if (!builder.hasRoom(type, channels) && !builder.isEmpty()) {
            plans.add(finish(builder, replay));
        }
    }

    private PlannedKernel finish(PlanBuilder builder, boolean replay) {
        PlannedKernel kernel = new PlannedKernel(who, builder.finish(communicator.address(), replay), operations);
        operations = new ArrayList<>(1);
        return kernel;
    }

    /**
     * Transfers of a group of operations, in an order that all ranks use. The transfers are ordered by rounds, which
     * are numbered from 0 to the number of ranks minus 1, and then from 0 again. In round {@code r}, each rank sends to
     * the rank {@code r} positions after it and receives from the rank {@code r} positions before it. With this order,
     * ranks may split the transfers into kernels at different places without a deadlock.
     */
    private static final class TransferSchedule {

        /**
         * Receives the transfers of a round: a send and a receive. One of the two is null if this rank has no such
         * transfer in the round.
         */
        interface Sink {
            void add(int round, @Nullable SendOrReceive send, @Nullable SendOrReceive receive);
        }

        /** @param number sort key: round + ranks * (number of earlier transfers of this round and direction) */
        private record Turn(long number, SendOrReceive transfer) {
        }

        private final int rank;
        private final int ranks;
        private final List<Turn> turns = new ArrayList<>();
        /** Number of sends of each round, followed by the number of receives of each round. */
        private final int[] counts;

        TransferSchedule(int rank, int ranks) {
            this.rank = rank;
            this.ranks = ranks;
            this.counts = new int[2 * ranks];
        }

        void add(SendOrReceive transfer) {
            int distance = transfer.sends() ? transfer.peer() - rank : rank - transfer.peer();
            int round = (distance + ranks) % ranks;
            long earlier = counts[transfer.sends() ? round : ranks + round]++;
            turns.add(new Turn(earlier * ranks + round, transfer));
        }

        /** Passes all transfers to the sink, in their order. */
        void drain(Sink sink) {
            turns.sort(Comparator.comparingLong(Turn::number));
            for (int i = 0; i < turns.size(); i++) {
                long number = turns.get(i).number;
                SendOrReceive first = turns.get(i).transfer;
                boolean isPair = i + 1 < turns.size() && turns.get(i + 1).number == number;
                SendOrReceive second = isPair ? turns.get(++i).transfer : null;
                sink.add((int) (number % ranks), first.sends() ? first : second, first.sends() ? second : first);
            }
        }
    }

    /**
     * Halves of transfers from a rank to itself: sends that wait for their receives, or receives that wait for their
     * sends.
     */
    private static final class SelfTransfers {

        private record Half(SendOrReceive transfer, DeviceStream stream) {

            /** Returns a text for messages. */
            @Override
            public String toString() {
                return transfer.count() + " " + transfer.type().label() + " on " + stream;
            }
        }

        private final String who;
        private final Queue<Half> halves = new ArrayDeque<>(1);

        SelfTransfers(String who) {
            this.who = who;
        }

        /** Returns the other half of a transfer if it was added before. Otherwise keeps this half and returns null. */
        @Nullable
        SendOrReceive other(SendOrReceive transfer, DeviceStream stream) {
            Half here = halves.peek();
            Half mine = new Half(transfer, stream);
            if (here == null || here.transfer.sends() == transfer.sends()) {
                halves.add(mine);
                return null;
            }
            halves.remove();
            requireSame(transfer.sends() ? mine : here, transfer.sends() ? here : mine);
            return here.transfer;
        }

        private void requireSame(Half send, Half receive) {
            if (send.transfer.count() != receive.transfer.count() || send.transfer.type() != receive.transfer.type()
                    || send.stream != receive.stream) {
                throw new IllegalArgumentException(who + "it sends " + send + " to itself, and receives " + receive
                        + " from itself: give both the same count, type and stream");
            }
        }

        /** Throws if a half is left at the end of a group, because no later call can add the other half. */
        void requireNone() {
            Half half = halves.peek();
            if (half != null) {
                String left = half.transfer.sends() ? "it sends " + half + " to itself, without a matching receive"
                        : "it receives " + half + " from itself, without a matching send";
                throw new IllegalArgumentException(
                        who + left + ": call send and receive in one group (Millrace.group), or sendReceive");
            }
        }
    }

    /**
     * Kernels of the newest operations, to be launched again if the program repeats an operation. Small operations are
     * kept because the planning of a small operation takes longer than its run. Large collectives are kept as well.
     * Otherwise the planning of a large collective that follows small collectives would run code that is not yet
     * compiled. For example, a collective of 256 KiB after smaller collectives took 150 us instead of 40 us between two
     * processes. Kept kernels reference their operands. Operands in memory that the garbage collector manages therefore
     * stay allocated for a few operations longer. Used by one thread at a time.
     */
    static final class RecentKernels {

        private static final int KEPT = 8;

        private final Registrations registrations;
        private final @Nullable Request[] asked = new Request[KEPT];
        private final @Nullable PlannedKernel[] kernels = new PlannedKernel[KEPT];
        private int latest;
        /** Value of {@link Registrations#version} at the time when the kept kernels were planned. */
        private int version;

        RecentKernels(Registrations registrations) {
            this.registrations = registrations;
        }

        /** Returns the kernel of an equal operation; null if the operation must be planned. */
        @Nullable
        PlannedKernel find(Request wanted) {
            int current = registrations.version();
            if (version != current) {
                version = current;
                forget();
            }
            for (int i = 0; i < KEPT; i++) {
                int at = latest + i & KEPT - 1;
                Request known = asked[at];
                if (known != null && known.isLike(wanted)) {
                    latest = at;
                    return kernels[at];
                }
            }
            return null;
        }

        private void forget() {
            for (int i = 0; i < KEPT; i++) {
                asked[i] = null;
                kernels[i] = null;
            }
        }

        /** Keeps the kernel that the caller planned after {@link #find} returned null. */
        void keep(Request planned, PlannedKernel kernel) {
            latest = latest + KEPT - 1 & KEPT - 1;
            asked[latest] = planned;
            kernels[latest] = kernel;
        }
    }

    /**
     * Launch of one communicator's kernels at the end of a group of operations, on one stream. This stream waits for
     * the earlier work of all streams that the operations name. The named streams then wait for this stream. If the
     * group contains other communicators, this stream is a separate stream and not one of the named streams. On a named
     * stream, one communicator's kernels would wait for another communicator's kernels. On a peer with the opposite
     * order of the communicators, the kernels would wait in the opposite order: a deadlock.
     */
    static final class GroupLaunch {

        private final EmulatedDevice device;
        private final PlanLauncher launcher;
        private final List<PlannedKernel> plans;
        private final DeviceStream stream;
        private final List<DeviceStream> others;
        private final @Nullable EmulatedStream own;
        private final @Nullable Runnable captured;
        private int launched;

        /**
         * Prepares the launch: its stream waits for the earlier work of all streams.
         *
         * @param used     streams that the operations name, at least one
         * @param alone    whether the group contains no other communicator
         * @param captured check that runs before each launch of a captured kernel, and throws if the launch is no
         *                 longer possible; null if the streams are not being captured
         */
        GroupLaunch(EmulatedDevice device, PlanLauncher launcher, List<PlannedKernel> plans, List<DeviceStream> used,
                boolean alone, @Nullable Runnable captured) {
            this.captured = captured;
            this.device = device;
            this.launcher = launcher;
            this.plans = plans;
            this.own = alone ? null : device.newStream();
            this.stream = alone ? used.getFirst() : own;
            this.others = List.copyOf(alone ? used.subList(1, used.size()) : used);
            for (DeviceStream other : others) {
                stream.waitFor(mark(other));
            }
        }

        private Event mark(DeviceStream marked) {
            Event event = device.newEvent();
            marked.record(event);
            return event;
        }

        /**
         * Launches as many kernels as the work FIFO has room for, or all kernels if the group contains no other
         * communicator. Returns whether all kernels are launched.
         */
        boolean launch() {
            try {
                while (launched < plans.size()) {
                    if (captured != null) {
                        ((EmulatedStream) stream).captures(launcher.captured(plans.get(launched), captured));
                    } else if (own == null) {
                        launcher.launch(plans.get(launched), stream);
                    } else if (!launcher.launchIfRoom(plans.get(launched), stream)) {
                        return false;
                    }
                    launched++;
                }
            } catch (RuntimeException | Error thrown) {
                end();
                throw thrown;
            }
            end();
            return true;
        }

        private void end() {
            if (!others.isEmpty()) {
                Event behind = mark(stream);
                others.forEach(other -> other.waitFor(behind));
            }
            if (own != null) {
                own.closeWhenDone();
            }
        }
    }
}
