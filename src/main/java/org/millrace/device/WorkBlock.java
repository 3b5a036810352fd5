package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkType;

/**
 * A block of a kernel. It reads its work from the kernel's arguments and serves one channel. The channel's collectives
 * run one after another. The channel's sends and receives all run at the same time, beside the collectives. On a GPU,
 * the warps of a block run one batch of sends and receives at a time. This class runs all batches at the same time, so
 * a transfer that waits for its peer delays no other transfer.
 *
 * <p>
 * If a plan runs more than once and its arguments do not change, each run uses the same blocks. A block then keeps the
 * work that it has read.
 */
final class WorkBlock implements Block {

    /** A work item that the block runs. {@code number} is 0 if the item's times are not recorded. */
    private static final class Running {
        final Block block;
        final boolean profiled;
        long number;

        Running(Block block, boolean profiled) {
            this.block = block;
            this.profiled = profiled;
        }
    }

    private final EmulatedDevice device;
    private final FunctionTable functions;
    private final KernelArguments arguments;
    private final KernelPlan plan;
    private final int block;
    private final int channel;
    private final List<Running> collectives = new ArrayList<>(1);
    private final List<Running> transfers = new ArrayList<>(0);
    private Resident resident;
    /** Index of the collective that is running. */
    private int current;
    private int transfersLeft;

    WorkBlock(EmulatedDevice device, FunctionTable functions, KernelArguments arguments, KernelPlan plan, int block) {
        this.device = device;
        this.functions = functions;
        this.arguments = arguments;
        this.plan = plan;
        this.block = block;
        this.channel = arguments.channel(block);
    }

    @Override
    public void begin() {
        if (canRewind()) {
            collectives.forEach(item -> item.block.rewind());
            transfers.forEach(item -> item.block.rewind());
        } else {
            load();
        }
        current = 0;
        if (!collectives.isEmpty()) {
            begin(collectives.getFirst());
        }
        for (int i = 0; i < transfers.size(); i++) {
            begin(transfers.get(i));
        }
        transfersLeft = transfers.size();
    }

    /**
     * Returns whether all work items can be rewound, that is, started again. Called before any item is rewound, because
     * a rewind reserves places on connections and cannot be undone.
     */
    @Override
    public boolean canRewind() {
        return resident != null && canRewind(collectives) && canRewind(transfers);
    }

    private static boolean canRewind(List<Running> items) {
        for (int i = 0; i < items.size(); i++) {
            if (!items.get(i).block.canRewind()) {
                return false;
            }
        }
        return true;
    }

    private void load() {
        collectives.clear();
        transfers.clear();
        resident = device.resident(arguments.communicator());
        DeviceCommunicator communicator = resident.communicator();
        WorkReader reader = resident.reader();
        reader.begin(arguments, block);
        while (reader.next()) {
            FunctionTable.DeviceFunction function = functions.of(reader.function());
            List<Running> kind = reader.type() == WorkType.POINT_TO_POINT ? transfers : collectives;
            for (int i = 0; i < reader.items(); i++) {
                MemorySegment item = reader.item(i);
                Block block = function.block(reader.function(), item, communicator, communicator.channel(channel),
                        plan.memory());
                kind.add(new Running(block, isProfiled(reader.type(), item)));
            }
        }
    }

    private static boolean isProfiled(WorkType type, MemorySegment item) {
        return type == WorkType.POINT_TO_POINT ? (PointToPointWork.of(item).flags() & PointToPointWork.PROFILED) != 0
                : (CollectiveWork.of(item).flags() & CollectiveWork.PROFILED) != 0;
    }

    private void begin(Running item) {
        if (item.profiled) {
            item.number = resident.begin(channel, System.nanoTime());
        }
    }

    @Override
    public int progress() {
        int moved = 0;
        while (current < collectives.size()) {
            Running item = collectives.get(current);
            moved += item.block.progress();
            if (!item.block.done()) {
                break;
            }
            complete(item);
            moved++;
            if (++current < collectives.size()) {
                begin(collectives.get(current));
            }
        }
        if (transfersLeft > 0) {
            moved += moveTransfers();
        }
        return moved;
    }

    private int moveTransfers() {
        int moved = 0;
        for (int i = 0; i < transfers.size(); i++) {
            Running item = transfers.get(i);
            if (!item.block.done()) {
                moved += item.block.progress();
                if (item.block.done()) {
                    complete(item);
                    transfersLeft--;
                    moved++;
                }
            }
        }
        return moved;
    }

    private void complete(Running item) {
        if (item.profiled) {
            resident.complete(channel, item.number, System.nanoTime());
        }
    }

    @Override
    public boolean done() {
        return current == collectives.size() && transfersLeft == 0;
    }

    @Override
    public String waitingFor() {
        if (current < collectives.size()) {
            return collectives.get(current).block.waitingFor();
        }
        return transfers.stream()
                .map(item -> item.block)
                .filter(each -> !each.done())
                .findFirst()
                .map(Block::waitingFor)
                .orElse("no connection");
    }
}
