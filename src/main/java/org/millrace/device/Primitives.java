package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * NCCL's primitives: send, receive and combinations of them, one chunk at a time, for any protocol. A primitive that
 * must wait returns to its caller and later resumes at the same position.
 */
abstract class Primitives {

    /** The primitive takes a slice from each peer that it receives from. */
    public static final int RECEIVE = 1;
    /** The primitive posts a slice to each peer that it sends to. */
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

    /** Kind of the current primitive, in implementations that run one at a time. */
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

    /** Enters the kernel. Called again only after all primitives are done and drained. */
    public abstract void enter();

    /** Advances all connections' steps to the next whole chunk. */
    final void enter(int chunkSteps) {
        for (ReceivePort port : from) {
            port.begin(chunkSteps);
        }
        for (SendPort port : to) {
            port.begin(chunkSteps);
        }
    }

    /**
     * Sets up the next primitive, which reads from an element of the input and writes from an element of the output.
     * The previous primitive must be complete.
     */
    public abstract void begin(int kind, long inputElement, long outputElement, long elementCount);

    /** Works until the primitive is complete or a peer is not ready. Returns the number of slices moved. */
    public abstract int progress();

    /** Returns whether {@link #begin} may be called. */
    public abstract boolean complete();

    /**
     * Returns whether all peers and proxies have finished reading this rank's elements. Called after the last
     * primitive; the kernel may end when it returns true.
     */
    public boolean drained() {
        return true;
    }

    /** Describes the peer that the primitive waits for, with the last counters read. */
    public final String waitingFor() {
        Port peer = waitedFor();
        return peer == null ? "nobody" : peer.toString();
    }

    /** Returns the connection to the first peer that is waited for; null if all are ready. */
    abstract @Nullable Port waitedFor();

    /**
     * Returns the first of the given peers that has not sent, or has no room for, the given number of steps; null if
     * all are ready.
     */
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
