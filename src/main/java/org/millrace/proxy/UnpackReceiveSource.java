package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;

/**
 * Source of received steps, for a device that gathers data of protocol Simple from pages. No operations are announced:
 * the headers of the peer's frames determine the steps. Data of protocol Simple is received into pages, and the device
 * gets the list of the pages. A wrapped source receives the lines of the other protocols.
 */
public final class UnpackReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ReceiveStepSource slots;
    private final BouncePages pages;
    private final SliceLists lists;
    private final SliceOrder order;
    /** For each frame in flight, the number of bytes of its slice; 0 if the frame has no list. */
    private final long[] sizes = new long[ConnectionLayout.SLOTS];
    private final long[] ordinals = new long[ConnectionLayout.SLOTS];
    private final int[] firstPages = new int[ConnectionLayout.SLOTS];
    private long taken;
    private long arrived;
    private long step;
    private long size;
    private boolean posted;
    private boolean simple;

    /**
     * Creates the source of one connection's steps.
     *
     * @param unpack pages, and the lists that the device reads
     * @param slots  source for the frames that are received into slots
     */
    public UnpackReceiveSource(ConnectionName name, UnpackMemory unpack, ReceiveStepSource slots) {
        this.name = name;
        this.slots = slots;
        this.pages = unpack.pages();
        this.lists = unpack.lists();
        this.order = new SliceOrder(unpack.firstOrdinal());
    }

    @Override
    public boolean admits(FrameHeader header) {
        if (!slots.admits(header)) {
            return false;
        }
        step = StepHeader.step(header);
        size = header.payloadBytes();
        posted = StepHeader.posted(header);
        simple = size > 0 && StepHeader.protocol(header) == Protocol.SIMPLE.id();
        if (simple && size > pages.room(ConnectionLayout.slot(step), StepHeader.end(header) - step)) {
            throw new ProxyException(name + ": unexpected frame: steps " + step + " to " + StepHeader.end(header)
                    + " with " + size + " bytes, more than their slots hold");
        }
        return true;
    }

    @Override
    public void receive(FrameReceiver receiver) {
        if (simple) {
            pages.receive(receiver, pages.first(ConnectionLayout.slot(step)));
        } else {
            slots.receive(receiver);
        }
    }

    @Override
    public @Nullable MemoryRegion slotRegion() {
        return simple ? null : slots.slotRegion();
    }

    @Override
    public long slotOffset() {
        return slots.slotOffset();
    }

    @Override
    public void taken() {
        int index = ConnectionLayout.slot(taken++);
        sizes[index] = simple ? size : 0;
        if (simple) {
            ordinals[index] = order.slice(step);
            firstPages[index] = pages.first(ConnectionLayout.slot(step));
        } else if (size > 0) {
            order.lines(step);
        } else if (posted) {
            order.empty(step);
        }
        slots.taken();
    }

    @Override
    public void arrived() {
        slots.arrived();
        int index = ConnectionLayout.slot(arrived++);
        if (sizes[index] > 0) {
            pages.publish(lists, ordinals[index], firstPages[index], sizes[index]);
        }
    }

    @Override
    public boolean drained() {
        return slots.drained();
    }

    /**
     * Numbers the Simple slices of a connection in the same way as its kernel. The kernel also counts empty Simple
     * slices. It does not count LL and LL128 steps. An empty step does not show its protocol, so this class derives the
     * protocol from the neighboring posted steps.
     *
     * <p>
     * Among NCCL's kernels only the all-reduce, all-gather and reduce-scatter of a ring post empty Simple slices. Their
     * slices have two steps, and their chunks have two slices. The first slice of a chunk begins at a multiple of 4.
     * Operations of a ring with LL or LL128 have two steps or more, without gaps. A send or receive of zero bytes uses
     * LL, like every transfer up to NCCL_P2P_LL_THRESHOLD. Therefore an empty step s was a Simple slice in two cases:
     * <ul>
     * <li>s is the first step of a chunk, and the next posted step is s + 2. Otherwise s would be a step of LL or
     * LL128, and s + 2 could not be the next posted step. Within the operation of s, the next posted step would be s +
     * 1. After the last step of an operation, the next posted step would be s + 1 or s + 4.
     * <li>s is the second slice of a chunk, and the previously posted step was s - 2.
     * </ul>
     * The next posted step shows whether one of the two cases applies. That is early enough, because the ordinal of a
     * slice is needed only to publish the list of the slice's pages. An empty slice has no pages.
     */
    public static final class SliceOrder {

        private static final long CHUNK_MASK = 3;
        private static final long SLICE_STEPS = 2;

        private long next;
        private long last;
        private boolean anyBefore;
        /** Step that was posted before the empty step; valid only if {@link #anyBeforeEmpty} is true. */
        private long beforeEmpty;
        private boolean anyBeforeEmpty;
        private boolean lastWasEmpty;

        /**
         * Creates the numbering of slices for a connection that has posted no steps yet.
         *
         * @param firstOrdinal ordinal of the first slice
         */
        public SliceOrder(long firstOrdinal) {
            next = firstOrdinal;
        }

        /** Records that an empty step was posted. */
        public void empty(long step) {
            resolve(step);
            beforeEmpty = last;
            anyBeforeEmpty = anyBefore;
            follow(step);
            lastWasEmpty = true;
        }

        /** Records that an LL or LL128 step with data was posted. */
        public void lines(long step) {
            resolve(step);
            follow(step);
        }

        /** Records that a Simple slice with data was posted. Returns the ordinal of the slice. */
        public long slice(long step) {
            resolve(step);
            follow(step);
            return next++;
        }

        private void follow(long step) {
            last = step;
            anyBefore = true;
        }

        private void resolve(long following) {
            if (!lastWasEmpty) {
                return;
            }
            lastWasEmpty = false;
            long place = last & CHUNK_MASK;
            boolean opensChunk = place == 0 && following - last == SLICE_STEPS;
            boolean endsChunk = place == SLICE_STEPS && anyBeforeEmpty && last - beforeEmpty == SLICE_STEPS;
            if (opensChunk || endsChunk) {
                next++;
            }
        }
    }

    /**
     * Memory of a connection whose kernel gathers slices from pages.
     *
     * @param firstOrdinal ordinal of the connection's first slice
     */
    public record UnpackMemory(BouncePages pages, SliceLists lists, long firstOrdinal) {
    }
}
