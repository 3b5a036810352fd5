package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.KernelArguments;
import org.millrace.abi.PointToPointWork;
import org.millrace.abi.WorkBatch;
import org.millrace.abi.WorkType;

/**
 * Makes the plan of one kernel out of one or more operations. An operation that {@linkplain #hasRoom does not fit} any
 * more goes into the next plan. One thread at a time; it can be used again for the next plan.
 */
public final class PlanBuilder {

    private final String who;
    private final int argumentBytes;
    private final int storedBytes;
    private final ChannelBatches[] channels = new ChannelBatches[KernelArguments.MAX_CHANNELS];
    private final List<MemorySegment> operands = new ArrayList<>();
    /** Numbers of the channels' latest batches, while batches are written. */
    private final int[] written = new int[KernelArguments.MAX_CHANNELS];
    private long channelMask;
    private int batches;
    private MemorySegment items = MemorySegment.ofArray(new long[128]);
    private int itemBytes;
    private int operations;
    private Object first;

    /**
     * @param who           whose plans they are, for messages: what their names begin with
     * @param argumentBytes the most bytes of a kernel's arguments, at most {@link KernelArguments#MAX_BYTES}
     * @param storedBytes   the most bytes of items outside of the arguments: half a FIFO, or as much as you like for
     *                      plans that are replayed
     */
    public PlanBuilder(String who, int argumentBytes, int storedBytes) {
        this.who = who;
        this.argumentBytes = argumentBytes;
        this.storedBytes = storedBytes;
    }

    /**
     * Whether a plan can take another item, if each of its channels takes it in a batch of its own. True for the first
     * item of a plan, even if it could take no other.
     */
    public boolean hasRoom(WorkType type, int channelCount) {
        int batchBytes = (batches + channelCount) * WorkBatch.BYTES;
        int bytes = itemBytes + type.itemBytes();
        return KernelArguments.BYTES + batchBytes + bytes <= argumentBytes
                || KernelArguments.BYTES + batchBytes <= argumentBytes && bytes <= storedBytes;
    }

    /**
     * Adds a collective on all its channels; its item is copied.
     *
     * @param name its text is for messages, and asked for when there is one
     * @param used the memory that the item means by address; null for none
     */
    public void collective(CollectiveWork work, int function, Object name, MemorySegment... used) {
        int offset = append(work.segment(), WorkType.COLLECTIVE);
        for (int channel = work.channelLow(); channel <= work.channelHigh(); channel++) {
            addBatch(channel, WorkType.COLLECTIVE, function, offset, 0);
        }
        added(name, used);
    }

    /**
     * Adds a send and a receive on all their channels; likewise.
     *
     * @param round number of the exchange's round, 0 or more: those of one round use one connection, and are never in
     *              one batch
     */
    public void pointToPoint(PointToPointWork work, int function, int round, Object name, MemorySegment... used) {
        int offset = append(work.segment(), WorkType.POINT_TO_POINT);
        int parts = Math.max(work.sendChannels(), work.receiveChannels());
        for (int part = 0; part < parts; part++) {
            addBatch(work.channelBase() + part & work.channels() - 1, WorkType.POINT_TO_POINT, function, offset, round);
        }
        added(name, used);
    }

    private void added(Object name, MemorySegment... used) {
        first = operations++ == 0 ? name : first;
        for (MemorySegment segment : used) {
            if (segment != null) {
                operands.add(segment);
            }
        }
    }

    private int append(MemorySegment item, WorkType type) {
        int offset = itemBytes;
        itemBytes += type.itemBytes();
        if (itemBytes > items.byteSize()) {
            MemorySegment larger = MemorySegment.ofArray(new long[2 * itemBytes / Long.BYTES]);
            MemorySegment.copy(items, 0, larger, 0, offset);
            items = larger;
        }
        MemorySegment.copy(item, 0, items, offset, type.itemBytes());
        return offset;
    }

    private void addBatch(int channel, WorkType type, int function, int offset, int round) {
        if (channels[channel] == null) {
            channels[channel] = new ChannelBatches();
        }
        channelMask |= 1L << channel;
        batches += channels[channel].add(type, function, offset, round);
    }

    public boolean isEmpty() {
        return operations == 0;
    }

    /**
     * Makes the plan, and begins the next.
     *
     * @param communicator address of the communicator as kernels see it
     * @param replayed     whether the plan will be run more than once
     * @throws IllegalStateException if nothing was added
     */
    public KernelPlan finish(long communicator, boolean replayed) {
        if (isEmpty()) {
            throw new IllegalStateException("a plan of nothing: add an operation first");
        }
        int head = KernelArguments.BYTES + batches * WorkBatch.BYTES;
        boolean inArguments = head + itemBytes <= argumentBytes;
        KernelArguments.WorkStorage storage = inArguments ? KernelArguments.WorkStorage.ARGUMENTS
                : replayed ? KernelArguments.WorkStorage.PERSISTENT : KernelArguments.WorkStorage.FIFO;
        MemorySegment arguments = MemorySegment.ofArray(new long[(inArguments ? head + itemBytes : head) / Long.BYTES]);
        KernelArguments.of(arguments).set(communicator, channelMask, storage);
        writeBatches(arguments);
        KernelPlan plan = new KernelPlan(who, first, operations, arguments, batches, items, itemBytes,
                new KernelMemory(operands.toArray(MemorySegment[]::new)));
        clear();
        return plan;
    }

    /**
     * In turns over the channels, in ascending order: so every channel's first batch has the number of the channel's
     * block.
     */
    private void writeBatches(MemorySegment arguments) {
        int index = 0;
        for (int turn = 0; index < batches; turn++) {
            for (long rest = channelMask; rest != 0; rest &= rest - 1) {
                int channel = Long.numberOfTrailingZeros(rest);
                if (turn < channels[channel].drafts().size()) {
                    ChannelBatches.Draft draft = channels[channel].drafts().get(turn);
                    WorkBatch.set(arguments, KernelArguments.batchOffset(index), draft.type, draft.function,
                            draft.offsetBase, draft.items);
                    if (turn > 0) {
                        boolean extended = channels[channel].drafts().get(turn - 1).extended;
                        WorkBatch.link(arguments, KernelArguments.batchOffset(written[channel]),
                                index - written[channel], extended);
                    }
                    written[channel] = index++;
                }
            }
        }
    }

    private void clear() {
        for (long rest = channelMask; rest != 0; rest &= rest - 1) {
            channels[Long.numberOfTrailingZeros(rest)].clear();
        }
        operands.clear();
        channelMask = 0;
        batches = 0;
        itemBytes = 0;
        operations = 0;
        first = null;
    }

    /**
     * The batches of one channel in a plan that is being made, by NCCL's rules: items go into the last batch while
     * their type and function are its own and its limits allow it; an item that its set of offsets cannot reach goes
     * into a batch that extends it.
     */
    static final class ChannelBatches {

        /** A batch, before it is written. */
        static final class Draft {
            final WorkType type;
            final int function;
            final int offsetBase;
            long items;
            boolean extended;

            Draft(WorkType type, int function, int offsetBase) {
                this.type = type;
                this.function = function;
                this.offsetBase = offsetBase;
            }
        }

        private final List<Draft> drafts = new ArrayList<>();
        private final int[] rounds = new int[WorkBatch.MAX_POINT_TO_POINT];
        private int mergedBytes;
        private int transfers;

        List<Draft> drafts() {
            return drafts;
        }

        void clear() {
            drafts.clear();
        }

        /** Adds an item; returns how many batches it took. */
        int add(WorkType type, int function, int offset, int round) {
            Draft last = drafts.isEmpty() ? null : drafts.getLast();
            boolean fresh = last == null || last.type != type || last.function != function || isFull(type, round);
            boolean extension = !fresh && !reaches(last, offset);
            if (fresh || extension) {
                if (extension) {
                    last.extended = true;
                } else {
                    mergedBytes = 0;
                    transfers = 0;
                }
                last = new Draft(type, function, offset);
                drafts.add(last);
            }
            last.items |= 1L << (offset - last.offsetBase) / type.itemBytes();
            mergedBytes += type.itemBytes();
            if (type == WorkType.POINT_TO_POINT) {
                rounds[transfers++] = round;
            }
            return fresh || extension ? 1 : 0;
        }

        /** The limits hold for a batch with all that extend it: the device merges them. */
        private boolean isFull(WorkType type, int round) {
            if (mergedBytes + type.itemBytes() > WorkBatch.MAX_ITEM_BYTES) {
                return true;
            }
            if (type != WorkType.POINT_TO_POINT) {
                return false;
            }
            if (transfers == WorkBatch.MAX_POINT_TO_POINT) {
                return true;
            }
            for (int i = 0; i < transfers; i++) {
                // Two transfers of one round use the same connection. And all ranks must cut their batches at the
                // same rounds, or they wait for each other for ever.
                if (rounds[i] == round
                        || rounds[i] / WorkBatch.MAX_POINT_TO_POINT != round / WorkBatch.MAX_POINT_TO_POINT) {
                    return true;
                }
            }
            return false;
        }

        private static boolean reaches(Draft batch, int offset) {
            int distance = offset - batch.offsetBase;
            return distance <= (WorkBatch.MAX_ITEMS - 1) * batch.type.itemBytes()
                    && distance % batch.type.itemBytes() == 0;
        }
    }
}
