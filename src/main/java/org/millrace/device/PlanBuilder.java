package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.abi.kernel.WorkType;

/**
 * Creates the plan of one kernel from one or more operations. If an operation {@linkplain #hasRoom does not fit}, the
 * caller adds it to the next plan. Used by one thread at a time. After {@link #finish}, the builder can be used for the
 * next plan.
 */
public final class PlanBuilder {

    private final String owner;
    private final int argumentBytes;
    private final int storedBytes;
    private final ChannelBatches[] channels = new ChannelBatches[KernelArguments.MAX_CHANNELS];
    private final List<MemorySegment> operands = new ArrayList<>();
    /** For each channel: index of the batch that was written most recently. */
    private final int[] written = new int[KernelArguments.MAX_CHANNELS];
    private long channelMask;
    private int batches;
    private MemorySegment items = MemorySegment.ofArray(new long[128]);
    private int itemBytes;
    private int operations;
    private Object first;

    /**
     * @param owner         owner of the plans; the plans' names in messages begin with the owner
     * @param argumentBytes maximum size of a kernel's arguments in bytes, at most {@link KernelArguments#MAX_BYTES}
     * @param storedBytes   maximum size in bytes of work items outside of the arguments: half of the FIFO, or any
     *                      number for plans that run more than once
     */
    public PlanBuilder(String owner, int argumentBytes, int storedBytes) {
        this.owner = owner;
        this.argumentBytes = argumentBytes;
        this.storedBytes = storedBytes;
    }

    /**
     * Returns whether another work item fits into the plan, even if the item needs a new batch on each of its channels.
     * The maximum sizes of the builder must allow at least one work item.
     */
    public boolean hasRoom(WorkType type, int channelCount) {
        int batchBytes = (batches + channelCount) * WorkBatch.BYTES;
        int bytes = itemBytes + type.itemBytes();
        return KernelArguments.BYTES + batchBytes + bytes <= argumentBytes
                || KernelArguments.BYTES + batchBytes <= argumentBytes && bytes <= storedBytes;
    }

    /**
     * Adds a collective on all channels of its work item. The work item is copied.
     *
     * @param name description for messages; converted to text only if a message needs it
     * @param used memory that the work item refers to by address; null elements are ignored
     */
    public void collective(CollectiveWork work, int function, Object name, MemorySegment... used) {
        int offset = append(work.segment(), WorkType.COLLECTIVE);
        for (int channel = work.channelLow(); channel <= work.channelHigh(); channel++) {
            addBatch(channel, WorkType.COLLECTIVE, function, offset, 0);
        }
        added(name, used);
    }

    /**
     * Adds a send and a receive on all channels of their work item. The work item is copied.
     *
     * @param round number of the round in the exchange between all ranks, 0 or more. Transfers of the same round may
     *              use the same connection, so they are never in one batch.
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
     * Creates the plan, and prepares the builder for the next plan.
     *
     * @param communicator address of the {@link DeviceCommunicator}
     * @param replayed     whether the plan will run more than once
     * @throws IllegalStateException if no operation was added
     */
    public KernelPlan finish(long communicator, boolean replayed) {
        if (isEmpty()) {
            throw new IllegalStateException("an empty plan: add an operation first");
        }
        int head = KernelArguments.BYTES + batches * WorkBatch.BYTES;
        boolean inArguments = head + itemBytes <= argumentBytes;
        KernelArguments.WorkStorage storage = inArguments ? KernelArguments.WorkStorage.ARGUMENTS
                : replayed ? KernelArguments.WorkStorage.PERSISTENT : KernelArguments.WorkStorage.FIFO;
        MemorySegment arguments = MemorySegment.ofArray(new long[(inArguments ? head + itemBytes : head) / Long.BYTES]);
        KernelArguments.of(arguments).set(communicator, channelMask, storage);
        writeBatches(arguments);
        KernelPlan plan = new KernelPlan(owner, first, operations, arguments, batches, items, itemBytes,
                new KernelMemory(operands.toArray(MemorySegment[]::new)));
        clear();
        return plan;
    }

    /**
     * Writes the batches: first the first batch of each channel, then the second batch of each channel, and so on.
     * Channels are in ascending order. The index of each channel's first batch is therefore the number of the channel's
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
     * The batches of one channel in an unfinished plan, formed by NCCL's rules. A work item joins the newest batch if
     * it has the same type and function, and if the limits of the batch allow it. A batch has a bit set of its items'
     * offsets. An item beyond the range of this bit set begins another batch, which extends the newest batch.
     */
    static final class ChannelBatches {

        /** A batch that has not been written to the arguments yet. */
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

        /** Adds a work item. Returns the number of new batches, 0 or 1. */
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

        /**
         * Returns whether the newest batch is full. The limits apply to a batch together with the batches that extend
         * it, because the device merges them.
         */
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
                // A batch contains at most one transfer of a round, because two transfers of one round would use the
                // same connection. Rounds form groups of MAX_POINT_TO_POINT rounds, and a batch contains rounds of a
                // single group. All ranks therefore begin a new batch at the same rounds. If the ranks began batches at
                // different rounds, they would wait for each other forever.
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
