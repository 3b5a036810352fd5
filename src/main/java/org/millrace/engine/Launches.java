package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import org.millrace.DataType;
import org.millrace.OperationGroup;
import org.millrace.ReduceOp;
import org.millrace.Stream;
import org.millrace.abi.KernelArguments;
import org.millrace.abi.PointToPointWork;
import org.millrace.abi.Protocol;
import org.millrace.abi.WorkBatch;
import org.millrace.abi.WorkType;
import org.millrace.device.function.FunctionNumber;
import org.millrace.device.stream.EmulatedDevice;
import org.millrace.device.stream.WorkLauncher;
import org.millrace.device.work.DeviceCommunicator;
import org.millrace.device.work.KernelPlan;
import org.millrace.device.work.PlanBuilder;

/**
 * What is to be launched when the outermost group ends: first its collectives, as they were issued, then its transfers,
 * as {@link TransferSchedule} orders them. Without a group that is at once.
 */
final class Launches implements OperationGroup.Part {

    private static final int TRANSFER =
            FunctionNumber.pack(FunctionNumber.Kind.TRANSFER, Protocol.SIMPLE, DataType.UINT8, ReduceOp.SUM);
    /** Bytes of items of a kernel that is replayed: they take no room in the FIFO. */
    private static final int REPLAYED_BYTES = 1 << 20;

    private final EmulatedDevice device;
    private final DeviceCommunicator communicator;
    private final Transfers transfers;
    private final WorkLauncher launcher;
    private final PlanBuilder once;
    private final PlanBuilder replayed;
    private final List<PlannedCollective> collectives = new ArrayList<>();
    private final TransferSchedule schedule;
    /** Each once; they are few. */
    private final List<Stream> streams = new ArrayList<>();
    private final OwnTransfers ownTransfers;
    private int depth;
    private Launch prepared;

    Launches(String who, Members members, int channels, Transfers transfers, OwnTransfers ownTransfers,
            WorkLauncher launcher) {
        this.device = members.threads().device();
        this.communicator = members.device();
        this.transfers = transfers;
        this.ownTransfers = ownTransfers;
        this.launcher = launcher;
        this.schedule = new TransferSchedule(members.control().rank(), members.control().size());
        int leastBytes = KernelArguments.BYTES + channels * WorkBatch.BYTES;
        int argumentBytes = Math.max(leastBytes, members.options().workArgumentBytes());
        this.once = new PlanBuilder(who, argumentBytes, communicator.fifo().bytes() / 2);
        this.replayed = new PlanBuilder(who, argumentBytes, REPLAYED_BYTES);
    }

    void begin() {
        depth++;
    }

    boolean endsGroup() {
        return --depth == 0;
    }

    boolean isInGroup() {
        return depth > 0;
    }

    void add(PlannedCollective collective, Stream stream) {
        collectives.add(collective);
        uses(stream);
    }

    void add(Transfer transfer, Stream stream) {
        schedule.add(transfer);
        uses(stream);
    }

    private void uses(Stream stream) {
        if (!streams.contains(stream)) {
            streams.add(stream);
        }
    }

    /** Launches what was added. */
    void launchNow() {
        prepare(true);
        launch();
    }

    @Override
    public void prepare(boolean alone) {
        try {
            prepared = streams.isEmpty() ? null : new Launch(device, launcher, plans(once, false), streams, alone);
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

    /**
     * Makes plans that can be launched more than once of what was added.
     *
     * @param stream the only one that may have been used
     */
    List<KernelPlan> record(Stream stream) {
        if (streams.stream().anyMatch(used -> used != stream)) {
            forget();
            throw new IllegalArgumentException(
                    "a plan's operations must be on the stream that the plan is made with, " + stream);
        }
        return plans(replayed, true);
    }

    /** Drops what was added. */
    void forget() {
        collectives.clear();
        schedule.clear();
        streams.clear();
    }

    private List<KernelPlan> plans(PlanBuilder builder, boolean replay) {
        List<KernelPlan> plans = new ArrayList<>(1);
        for (PlannedCollective each : collectives) {
            finishIfFull(builder, WorkType.COLLECTIVE, each.work().channelHigh() + 1, replay, plans);
            builder.collective(each.work(), each.function(), each, each, each.send(), each.receive());
        }
        schedule.drain((round, send, receive) -> {
            PlannedTransfer each = new PlannedTransfer(transfers, send, receive);
            PointToPointWork work = transfers.work(send, receive);
            finishIfFull(builder, WorkType.POINT_TO_POINT, Math.max(work.sendChannels(), work.receiveChannels()),
                    replay, plans);
            builder.pointToPoint(work, TRANSFER, round, each, each, send == null ? null : send.buffer(),
                    receive == null ? null : receive.buffer());
        });
        if (!builder.isEmpty()) {
            plans.add(builder.finish(communicator.address(), replay));
        }
        collectives.clear();
        return plans;
    }

    private void finishIfFull(PlanBuilder builder, WorkType type, int channels, boolean replay,
            List<KernelPlan> plans) {
        if (!builder.hasRoom(type, channels) && !builder.isEmpty()) {
            plans.add(builder.finish(communicator.address(), replay));
        }
    }
}
