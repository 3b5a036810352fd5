package org.millrace.device;

import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.WorkBatch;
import org.millrace.abi.WorkType;

/**
 * The batches of one channel in a plan that is being made, by NCCL's rules: items go into the last batch while their
 * type and function are its own and its limits allow it; an item that its set of offsets cannot reach goes into a batch
 * that extends it.
 */
final class ChannelBatches {

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
        return distance <= (WorkBatch.MAX_ITEMS - 1) * batch.type.itemBytes() && distance % batch.type.itemBytes() == 0;
    }
}
