package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * NCCL's primitives: send, receive and combinations of them, one chunk at a time, whatever the protocol. A primitive
 * that must wait gives up the thread and goes on where it was.
 */
abstract class Primitives {

    /** The primitive takes a slice from each peer before. */
    public static final int RECEIVE = 1;
    /** The primitive posts a slice to each peer behind. */
    public static final int SEND = 2;
    /** The primitive reads this rank's input. */
    public static final int INPUT = 4;
    /** The primitive writes this rank's output. */
    public static final int OUTPUT = 8;
    /** The reduction is complete after this primitive. */
    public static final int LAST = 16;

    final ReceivePort[] from;
    final SendPort[] to;
    final BlockMemory memory;
    final int elementBytes;

    /** Of the primitive that is under way, in the implementations that have one at a time. */
    int kind;
    int receives;
    int sends;
    long inputOffset;
    long outputOffset;

    Primitives(ReceivePort[] from, SendPort[] to, BlockMemory memory) {
        this.from = from;
        this.to = to;
        this.memory = memory;
        this.elementBytes = memory.elementBytes();
    }

    final void set(int primitiveKind, long inputElement, long outputElement) {
        kind = primitiveKind;
        receives = (kind & RECEIVE) != 0 ? from.length : 0;
        sends = (kind & SEND) != 0 ? to.length : 0;
        inputOffset = inputElement * elementBytes;
        outputOffset = outputElement * elementBytes;
    }

    /** Enters the kernel; once more when all is done and drained. */
    public abstract void enter();

    /** All connections' steps go to the next whole chunk. */
    final void enter(int chunkSteps) {
        for (ReceivePort port : from) {
            port.begin(chunkSteps);
        }
        for (SendPort port : to) {
            port.begin(chunkSteps);
        }
    }

    /**
     * Sets up the next primitive, from an element of the input and to an element of the output on; the one before must
     * be complete.
     */
    public abstract void begin(int kind, long inputElement, long outputElement, long elementCount);

    /** Works on until the primitive is complete or a peer is not ready; returns the number of slices moved. */
    public abstract int progress();

    /** Whether {@link #begin} may be called. */
    public abstract boolean complete();

    /** Whether nobody reads this rank's elements any more, after the last primitive: then the kernel may end. */
    public boolean drained() {
        return true;
    }

    /** Which peer the primitive waits for, with what was last seen. */
    public final String waitingFor() {
        Port peer = waitedFor();
        return peer == null ? "nobody" : peer.toString();
    }

    /** The first peer that is waited for; null if there is none. */
    abstract @Nullable Port waitedFor();

    /** The first of so many peers that has not sent, or has no room for, so many steps; null if there is none. */
    final @Nullable Port notReady(int receives, int sends, int steps) {
        for (int i = 0; i < receives; i++) {
            if (!from[i].hasData(steps)) {
                return from[i];
            }
        }
        for (int i = 0; i < sends; i++) {
            if (!to[i].hasRoom(steps)) {
                return to[i];
            }
        }
        return null;
    }
}
