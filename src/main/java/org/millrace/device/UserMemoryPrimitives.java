package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.device.ChunkShape.Slices;

/**
 * The primitives of operations whose elements stay in the user's memory (mode PTR). The device posts their addresses
 * and waits. The proxies send from there and receive there. Only elements that must be combined arrive in a slot. Only
 * elements that no operand has room for are sent from a slot. Chunks are divided as in {@link SimplePrimitives}, so
 * that the peer may use slots.
 *
 * <p>
 * Primitives that have begun wait for each other in a window that is as wide as the connection's slots. The locations
 * of all slices in the window are offered to the receiving proxy ahead of time, so that several frames may arrive at
 * once. Elements that are passed on are sent from the output. If the output is also the input (in place), arriving
 * elements overwrite nothing that is still to be sent. A rank's own elements return to it, combined, only after they
 * have traveled all the way around the ring.
 *
 * <p>
 * The user gets the memory back when the kernel ends, so the kernel ends only when everything has been sent.
 */
final class UserMemoryPrimitives extends Primitives {

    private static final int WINDOW = ConnectionLayout.SLOTS;

    private final int chunkSteps;
    private final int sliceSteps;
    private final Slices slices;
    /** Kinds of the slices in the window, by slice number. The three following arrays have the same index. */
    private final int[] kinds = new int[WINDOW];
    private final long[] inputsAt = new long[WINDOW];
    private final long[] outputsAt = new long[WINDOW];
    private final long[] sizes = new long[WINDOW];
    private long begun;
    private long done;
    /** Number of steps in the window that receive. */
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
     * Offers a location for a slice that is received. The window is not wider than the slots, so the step that used
     * this step's slot and {@code connFifo} entry before has been released. An empty slice needs no location.
     */
    private void offer(int at) {
        if (sizes[at] > 0) {
            boolean combined = (kinds[at] & INPUT) != 0;
            from[0].offer(receiving,
                    combined ? from[0].slotAddress(receiving) : memory.output().address() + outputsAt[at], sizes[at]);
        }
        receiving += sliceSteps;
    }

    /** Returns whether the window has room for another chunk. */
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

    /** Combines and copies the elements if necessary. Returns the address of the slice's elements afterwards. */
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

    /** Returns the first peer that the oldest slice waits for; null if it waits for none. */
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
