package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.device.ChunkShape.Slices;

/**
 * The primitives for elements that stay in the user's memory (mode PTR). The device posts the addresses of the elements
 * and waits. The proxies send from the user's memory and receive into it. Elements arrive in a slot only if they must
 * be combined. Elements are sent from a slot only if neither the input nor the output contains them. Chunks are divided
 * as in {@link SimplePrimitives}, so that the peer can use slots.
 *
 * <p>
 * Several slices are in flight, at most as many as the connection's slots hold ({@link #WINDOW} steps). The device
 * offers the destinations of all these slices to the receiving proxy in advance, so that several frames can arrive at
 * the same time. Elements that this rank passes on are sent from the output. If the output is also the input (in
 * place), arriving elements do not overwrite elements that must still be sent. The combined elements for a place of the
 * output arrive only after the rank's own elements have traveled around the whole ring.
 *
 * <p>
 * The kernel ends only when the proxies have sent everything, because the user may reuse the memory after the kernel's
 * end.
 */
final class UserMemoryPrimitives extends Primitives {

    private static final int WINDOW = ConnectionLayout.SLOTS;

    private final int chunkSteps;
    private final int sliceSteps;
    private final Slices slices;
    /**
     * Kind of each slice in flight, indexed by slice number modulo {@link #WINDOW}. The next three arrays are indexed
     * in the same way.
     */
    private final int[] kinds = new int[WINDOW];
    private final long[] inputsAt = new long[WINDOW];
    private final long[] outputsAt = new long[WINDOW];
    private final long[] sizes = new long[WINDOW];
    private long begun;
    private long done;
    /** Number of steps of received slices in flight. */
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
     * Offers the destination of a received slice to the proxy. The number of steps in flight never exceeds the number
     * of slots. The previous step with the same slot and {@code connFifo} entry has therefore been released. An empty
     * slice needs no destination.
     */
    private void offer(int at) {
        if (sizes[at] > 0) {
            boolean combined = (kinds[at] & INPUT) != 0;
            from[0].offer(receiving,
                    combined ? from[0].slotAddress(receiving) : memory.output().address() + outputsAt[at], sizes[at]);
        }
        receiving += sliceSteps;
    }

    /**
     * Returns whether the connection has slots for all slices of another chunk.
     */
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

    /** Combines and copies the elements of a slice if necessary. Returns the address of the slice for a send. */
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

    /** Returns the first connection that the oldest slice waits for; null if this slice need not wait. */
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
