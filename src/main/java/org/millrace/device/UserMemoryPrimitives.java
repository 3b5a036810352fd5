package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.device.ChunkShape.Slices;

/**
 * The primitives of operations whose elements stay where the user has them (mode PTR): the device says where they are,
 * and waits; the proxies send from there, and receive there. Only what has to be combined arrives in a slot, and only
 * what no operand has room for is sent from one. Chunks are cut as {@link SimplePrimitives} cut them, so that the peer
 * may use slots.
 *
 * <p>
 * Primitives that are begun wait for each other in a window as wide as the connection has slots: the places of all
 * slices in it are offered to the receiving proxy ahead, so that several frames may arrive at a time. Elements that are
 * passed on are sent from the output. Where that is the input too (in place), what arrives there overwrites nothing
 * that is still to be sent: a rank's own elements come back to it, combined, only after they have gone all the way
 * round.
 *
 * <p>
 * The user gets the memory back when the kernel ends, so it ends only when everything is sent.
 */
final class UserMemoryPrimitives extends Primitives {

    private static final int WINDOW = ConnectionLayout.SLOTS;

    private final int chunkSteps;
    private final int sliceSteps;
    private final Slices slices;
    /** Of the slices in the window, by their number. */
    private final int[] kinds = new int[WINDOW];
    private final long[] inputsAt = new long[WINDOW];
    private final long[] outputsAt = new long[WINDOW];
    private final long[] sizes = new long[WINDOW];
    private long begun;
    private long done;
    /** Steps in the window that receive. */
    private int receiving;

    UserMemoryPrimitives(ReceivePort[] from, SendPort[] to, BlockMemory memory, ChunkShape shape) {
        super(from, to, memory);
        if (from.length > 1) {
            throw new IllegalArgumentException("elements of " + from.length + " peers are combined in slots");
        }
        this.chunkSteps = shape.chunkSteps();
        this.sliceSteps = shape.sliceSteps();
        this.slices = Slices.of(from, to, elementBytes, chunkSteps, sliceSteps);
    }

    @Override
    public void enter() {
        enter(chunkSteps);
    }

    @Override
    public void begin(int kind, long inputElement, long outputElement, long elementCount) {
        boolean receives = (kind & RECEIVE) != 0;
        long elements = Math.max(elementCount, 0);
        long sliceElements = slices.elements(elements);
        for (int slice = 0; slice < slices.perChunk(); slice++) {
            long first = Math.min(slice * sliceElements, elements);
            int at = ConnectionLayout.slot(begun++);
            kinds[at] = kind;
            inputsAt[at] = (inputElement + first) * elementBytes;
            outputsAt[at] = (outputElement + first) * elementBytes;
            sizes[at] = (Math.min(first + sliceElements, elements) - first) * elementBytes;
            if (receives) {
                offer(at);
            }
        }
    }

    /**
     * The window is no wider than the slots: the step that had this one's slot and {@code connFifo} entry before has
     * been released. Nothing needs no place.
     */
    private void offer(int at) {
        if (sizes[at] > 0) {
            boolean combined = (kinds[at] & INPUT) != 0;
            from[0].offer(receiving,
                    combined ? from[0].slotAddress(receiving) : memory.output().address() + outputsAt[at], sizes[at]);
        }
        receiving += sliceSteps;
    }

    /** Whether the window has room for one more. */
    @Override
    public boolean complete() {
        return (begun - done) * sliceSteps + chunkSteps <= WINDOW;
    }

    @Override
    public int progress() {
        int moved = 0;
        while (done != begun && awaited() == null) {
            pass(ConnectionLayout.slot(done));
            done++;
            moved++;
        }
        return moved;
    }

    private void pass(int at) {
        int kind = kinds[at];
        long address = work(at);
        for (int i = 0; (kind & SEND) != 0 && i < to.length; i++) {
            to[i].point(address);
            to[i].postSize(sizes[at]);
            to[i].post(sliceSteps);
        }
        if ((kind & RECEIVE) != 0) {
            from[0].release(sliceSteps);
            receiving -= sliceSteps;
        }
    }

    /** Combines and copies what has to be; returns where the slice's elements are then. */
    private long work(int at) {
        int kind = kinds[at];
        boolean keeps = (kind & OUTPUT) != 0;
        if (sizes[at] == 0 || (kind & INPUT) == 0) {
            return memory.output().address() + outputsAt[at];
        }
        if ((kind & RECEIVE) == 0 && !keeps && !memory.own().hasPreOp()) {
            return memory.input().address() + inputsAt[at];
        }
        MemorySegment destination = keeps ? memory.output() : to[0].buffer();
        long destinationAt = keeps ? outputsAt[at] : to[0].slotOffset();
        long count = sizes[at] / elementBytes;
        if ((kind & RECEIVE) == 0) {
            memory.own().copy(memory.input(), inputsAt[at], destination, destinationAt, count);
        } else {
            memory.own()
                    .reduce(memory.input(), inputsAt[at], from[0].buffer(), from[0].slotOffset(), destination,
                            destinationAt, count, (kind & LAST) != 0);
        }
        return destination.address() + destinationAt;
    }

    /** The first peer that the oldest slice waits for; null if there is none. */
    private @Nullable Port awaited() {
        int kind = kinds[ConnectionLayout.slot(done)];
        return notReady((kind & RECEIVE) != 0 ? 1 : 0, (kind & SEND) != 0 ? to.length : 0, sliceSteps);
    }

    @Override
    public boolean drained() {
        if (done != begun) {
            return false;
        }
        for (SendPort port : to) {
            if (!port.allSent()) {
                return false;
            }
        }
        return true;
    }

    @Override
    @Nullable
    Port waitedFor() {
        return done != begun ? awaited() : to.length > 0 ? to[0] : null;
    }
}
