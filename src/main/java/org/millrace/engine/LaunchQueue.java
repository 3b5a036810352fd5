package org.millrace.engine;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.Event;
import org.millrace.OperationGroup;
import org.millrace.abi.KernelArguments;
import org.millrace.abi.PointToPointWork;
import org.millrace.abi.WorkBatch;
import org.millrace.abi.WorkType;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.EmulatedDevice;
import org.millrace.device.EmulatedStream;
import org.millrace.device.PlanBuilder;
import org.millrace.engine.PlanLauncher.PlannedKernel;
import org.millrace.engine.PlannedOperation.Collective;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.PlannedOperation.PlannedTransfer;
import org.millrace.engine.PlannedOperation.SendOrReceive;

/**
 * What is to be launched when the outermost group ends: first its collectives, as they were issued, then its transfers,
 * as {@link TransferSchedule} orders them. Without a group that is at once.
 */
final class LaunchQueue implements OperationGroup.Part {

    /** Bytes of items of a kernel that is replayed: they take no room in the FIFO. */
    private static final int REPLAYED_BYTES = 1 << 20;

    private final String who;
    private final EmulatedDevice device;
    private final DeviceCommunicator communicator;
    private final TransferPlanner transfers;
    private final PlanLauncher launcher;
    private final Runnable check;
    private final PlanBuilder once;
    private final PlanBuilder replayed;
    private final List<PlannedCollective> collectives = new ArrayList<>();
    /** Of the plan that is being made. */
    private List<PlannedOperation> operations = new ArrayList<>(1);
    private final TransferSchedule schedule;
    /** Each once; they are few. */
    private final List<DeviceStream> streams = new ArrayList<>();
    private final SelfTransfers ownTransfers;
    private final RecentKernels recent;
    private int depth;
    private @Nullable GroupLaunch prepared;

    /**
     * @param argumentBytes the most bytes of a kernel's arguments, if each channel's batch fits
     * @param check         refuses a launch, if the communicator has failed or is closed
     * @param registrations what plans depend on besides what is asked for
     */
    public LaunchQueue(String who, EmulatedDevice device, DeviceCommunicator communicator, int argumentBytes,
            TransferPlanner transfers, PlanLauncher launcher, Runnable check, Registrations registrations) {
        this.check = check;
        this.recent = new RecentKernels(registrations);
        this.who = who;
        this.device = device;
        this.communicator = communicator;
        this.transfers = transfers;
        this.ownTransfers = new SelfTransfers(who);
        this.launcher = launcher;
        this.schedule = new TransferSchedule(communicator.rank(), communicator.ranks());
        int leastBytes = KernelArguments.BYTES + communicator.channels() * WorkBatch.BYTES;
        int mostBytes = Math.max(leastBytes, argumentBytes);
        this.once = new PlanBuilder(who, mostBytes, communicator.fifo().bytes() / 2);
        this.replayed = new PlanBuilder(who, mostBytes, REPLAYED_BYTES);
    }

    public void begin() {
        depth++;
    }

    public boolean endsGroup() {
        return --depth == 0;
    }

    public boolean isInGroup() {
        return depth > 0;
    }

    public void add(PlannedCollective collective, DeviceStream stream) {
        collectives.add(collective);
        uses(stream);
    }

    /** What a rank sends to itself waits for its receive, and the other way round. */
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

    public void launchNow() {
        prepare(true);
        launch();
    }

    /**
     * Launches a collective alone, and once more what was planned for one like it, if that was lately: most programs
     * call the same ones again and again. Outside of groups.
     *
     * @param stream not captured
     */
    public void launchNow(Collective asked, CollectivePlanner planner, DeviceStream stream) {
        PlannedKernel kernel = recent.find(asked);
        if (kernel == null) {
            PlannedCollective planned = planner.plan(asked);
            once.collective(planned.work(), planned.function(), planned, asked.send(), asked.receive());
            kernel = new PlannedKernel(who, once.finish(communicator.address(), false), List.of(planned));
            recent.keep(asked, kernel);
        }
        launcher.launch(kernel, stream);
    }

    @Override
    public void prepare(boolean alone) {
        try {
            boolean captured = !streams.isEmpty() && device.isCapturing(streams);
            prepared = streams.isEmpty() ? null
                    : new GroupLaunch(device, launcher, plans(captured ? replayed : once, captured), streams, alone,
                            captured ? check : null);
            streams.clear();
        } catch (RuntimeException | Error thrown) {
            forget();
            throw thrown;
        }
    }

    @Override
    public boolean launch() {
        if (prepared != null && !prepared.launch()) {
            return false;
        }
        prepared = null;
        ownTransfers.requireNone();
        return true;
    }

    /** Makes kernels that can be launched more than once of what was added. */
    public Recorded record(DeviceStream stream) {
        ownTransfers.requireNone();
        List<DeviceStream> others = streams.stream().filter(used -> used != stream).toList();
        return new Recorded(plans(replayed, true), others);
    }

    /**
     * What can be launched more than once.
     *
     * @param others streams that operations named besides the one that stands for the stream of a launch
     */
    public record Recorded(List<PlannedKernel> kernels, List<DeviceStream> others) {
    }

    /** Launches once more what was recorded; the other streams wait for it, and it for what they hold. */
    public void launch(Recorded recorded, DeviceStream stream) {
        List<DeviceStream> used = new ArrayList<>(List.of(stream));
        recorded.others.stream().filter(other -> other != stream).forEach(used::add);
        new GroupLaunch(device, launcher, recorded.kernels, used, true, null).launch();
    }

    public void forget() {
        collectives.clear();
        schedule.clear();
        streams.clear();
    }

    private List<PlannedKernel> plans(PlanBuilder builder, boolean replay) {
        List<PlannedKernel> plans = new ArrayList<>(1);
        for (PlannedCollective each : collectives) {
            finishIfFull(builder, WorkType.COLLECTIVE, each.work().channelHigh() + 1, replay, plans);
            builder.collective(each.work(), each.function(), each, each.asked().send(), each.asked().receive());
            operations.add(each);
        }
        schedule.drain((round, send, receive) -> {
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
        collectives.clear();
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
     * The transfers of a group in the order in which all ranks run them: in round {@code r} of an epoch each rank sends
     * to the rank that is {@code r} further on, and receives from the one that is {@code r} before it. So whatever
     * ranks cut into kernels at different places, none waits for what another has not reached.
     */
    private static final class TransferSchedule {

        /** Takes an item; null for a half that is not there. */
        interface Sink {
            void add(int round, @Nullable SendOrReceive send, @Nullable SendOrReceive receive);
        }

        private final int rank;
        /** By peer. */
        private final List<Queue<SendOrReceive>> sends;
        /** By peer. */
        private final List<Queue<SendOrReceive>> receives;
        private int waiting;

        TransferSchedule(int rank, int ranks) {
            this.rank = rank;
            this.sends = queues(ranks);
            this.receives = queues(ranks);
        }

        private static List<Queue<SendOrReceive>> queues(int ranks) {
            List<Queue<SendOrReceive>> queues = new ArrayList<>(ranks);
            for (int peer = 0; peer < ranks; peer++) {
                queues.add(new ArrayDeque<>());
            }
            return queues;
        }

        void add(SendOrReceive transfer) {
            (transfer.sends() ? sends : receives).get(transfer.peer()).add(transfer);
            waiting++;
        }

        /** Hands all of them out. */
        void drain(Sink sink) {
            int ranks = sends.size();
            for (int round = 0; waiting > 0; round = (round + 1) % ranks) {
                SendOrReceive send = poll(sends.get((rank + round) % ranks));
                SendOrReceive receive = poll(receives.get((rank - round + ranks) % ranks));
                if (send != null || receive != null) {
                    sink.add(round, send, receive);
                }
            }
        }

        private SendOrReceive poll(Queue<SendOrReceive> queue) {
            SendOrReceive transfer = queue.poll();
            waiting -= transfer == null ? 0 : 1;
            return transfer;
        }

        void clear() {
            drain((_, _, _) -> {});
        }
    }

    /** Sends of a rank to itself, and the receives that they wait for. */
    private static final class SelfTransfers {

        private record Half(SendOrReceive transfer, DeviceStream stream) {
        }

        private final String who;
        private final Deque<Half> sends = new ArrayDeque<>();
        private final Deque<Half> receives = new ArrayDeque<>();

        SelfTransfers(String who) {
            this.who = who;
        }

        /** The other half, if it is here already; null if it is still to come. */
        @Nullable
        SendOrReceive other(SendOrReceive transfer, DeviceStream stream) {
            Half here = (transfer.sends() ? receives : sends).poll();
            if (here == null) {
                (transfer.sends() ? sends : receives).add(new Half(transfer, stream));
                return null;
            }
            Half mine = new Half(transfer, stream);
            requireSame(transfer.sends() ? mine : here, transfer.sends() ? here : mine);
            return here.transfer;
        }

        private void requireSame(Half send, Half receive) {
            if (send.transfer.count() != receive.transfer.count() || send.transfer.type() != receive.transfer.type()
                    || send.stream != receive.stream) {
                throw new IllegalArgumentException(who + "it sends itself " + send.transfer.count() + " "
                        + send.transfer.type().label() + " on " + send.stream + " and receives "
                        + receive.transfer.count() + " " + receive.transfer.type().label() + " on " + receive.stream
                        + ": they must be the same");
            }
        }

        /** At a group's end: nobody will bring the missing halves. */
        void requireNone() {
            if (!sends.isEmpty() || !receives.isEmpty()) {
                String left = sends.size() + " sends to itself without a receive, and " + receives.size()
                        + " receives without a send";
                sends.clear();
                receives.clear();
                throw new IllegalArgumentException(who + left + ": both belong into one group");
            }
        }
    }

    /**
     * The kernels of the last few collectives, to be launched again where the program asks for the same: to plan a
     * small one takes longer than to run it. Large ones are kept as well: to plan those alone each time takes code that
     * small ones have not warmed up (256 KiB behind smaller sizes, two processes: 150 us in place of 40). What is kept
     * holds its operands: their memory, if the collector manages it, stays for a few operations longer. One thread at a
     * time.
     */
    static final class RecentKernels {

        private static final int KEPT = 4;

        private final Registrations registrations;
        private final @Nullable Collective[] asked = new Collective[KEPT];
        private final @Nullable PlannedKernel[] kernels = new PlannedKernel[KEPT];
        private int latest;
        /** Of the registrations that what is kept was planned with. */
        private int version;

        RecentKernels(Registrations registrations) {
            this.registrations = registrations;
        }

        /** The kernel of a collective like this one; null if it has to be planned. */
        @Nullable
        PlannedKernel find(Collective wanted) {
            int current = registrations.version();
            if (version != current) {
                version = current;
                forget();
            }
            for (int i = 0; i < KEPT; i++) {
                int at = latest + i & KEPT - 1;
                Collective known = asked[at];
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

        /** Behind {@link #find}: what was planned meanwhile. */
        void keep(Collective planned, PlannedKernel kernel) {
            latest = latest + KEPT - 1 & KEPT - 1;
            asked[latest] = planned;
            kernels[latest] = kernel;
        }
    }

    /**
     * The kernels of one communicator at a group's end. They run on one stream, which waits for what those that their
     * operations name held before, and they for it behind. If other communicators are in the group that is a stream of
     * its own: on one of the program's, one communicator's kernels would wait for another's, and on a peer that named
     * the communicators in another order these would wait for those.
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
         * A launch that has not begun: what the streams are given from now on does not come before it.
         *
         * @param used     the streams that the operations name, at least one
         * @param alone    whether no other communicator is in the group
         * @param captured refuses what can be launched no more, where the streams are captured; null where they are not
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
         * Launches what the work FIFO has room for: all there is, if no other communicator is in the group. Returns
         * whether that was all.
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
