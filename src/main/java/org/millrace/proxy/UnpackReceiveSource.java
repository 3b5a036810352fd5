package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;

/**
 * Steps to receive as the peer's frames say them; Simple data goes to pages, and the device is given a list of them.
 * Lines go where they always go.
 */
public final class UnpackReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ReceiveStepSource slots;
    private final BouncePages pages;
    private final SliceLists lists;
    private final SliceOrder order;
    /** Of the frames under way: a slice's bytes, or 0 for what has no list. */
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
     * Steps of one connection.
     *
     * @param unpack the pages, and where the device looks for their lists
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
     * Numbers the Simple slices of a connection as its kernel does, from the steps that were posted: it counts empty
     * slices, too, and does not count LL and LL128 steps, and an empty step does not say what it is.
     *
     * <p>
     * Of NCCL's kernels only a ring's all-reduce, all-gather and reduce-scatter post empty Simple slices; their slices
     * have two steps, and their chunks two slices, the first at a multiple of 4. LL and LL128 operations of a ring have
     * two steps or more, without gaps. Send and receive of nothing are LL, as they are for everything up to
     * NCCL_P2P_LL_THRESHOLD. Then an empty step s was a Simple slice
     * <ul>
     * <li>if s is the first of a chunk, and the next step posted is s + 2; it is s + 1 within another operation, and s
     * + 4 or s + 1 if s was another's last.
     * <li>if s is the second of a chunk, and the one posted before was s - 2.
     * </ul>
     * Both are known when the next step arrives, which is early enough: an empty slice has no list.
     */
    public static final class SliceOrder {

        private static final long CHUNK_MASK = 3;
        private static final long SLICE_STEPS = 2;

        private long next;
        private long last;
        private boolean anyBefore;
        /** The step before the empty one, and whether there is one. */
        private long beforeEmpty;
        private boolean anyBeforeEmpty;
        private boolean lastWasEmpty;

        /** The order of a connection on which nothing was posted yet. */
        public SliceOrder(long firstOrdinal) {
            next = firstOrdinal;
        }

        /** An empty step was posted. */
        public void empty(long step) {
            resolve(step);
            beforeEmpty = last;
            anyBeforeEmpty = anyBefore;
            follow(step);
            lastWasEmpty = true;
        }

        /** An LL or LL128 step with lines was posted. */
        public void lines(long step) {
            resolve(step);
            follow(step);
        }

        /** A Simple slice with data was posted. */
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

    /** What a connection has for a kernel that unpacks. */
    public record UnpackMemory(BouncePages pages, SliceLists lists, long firstOrdinal) {
    }
}
