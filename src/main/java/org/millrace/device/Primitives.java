package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * NCCL's primitives for one protocol: send, receive, and combinations of them with reduce and copy, for one chunk at a
 * time. If a primitive must wait, it returns to its caller, and the next call continues at the same position.
 */
abstract class Primitives {

    /** The primitive receives a slice from each receiving connection. */
    public static final int RECEIVE = 1;
    /** The primitive posts a slice to each sending connection. */
    public static final int SEND = 2;
    /** The primitive reads elements of this rank's input. */
    public static final int INPUT = 4;
    /** The primitive writes elements to this rank's output. */
    public static final int OUTPUT = 8;
    /** The reduction is complete after this primitive. */
    public static final int LAST = 16;

    final ReceivePort[] from;
    final SendPort[] to;
    final BlockMemory memory;
    final int elementBytes;

    /**
     * Kind of the current primitive: a combination of the constants above. Implementations that run several primitives
     * at the same time do not use this field.
     */
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

    /**
     * Begins the use of the connections by a kernel. Called again for the next kernel only after all primitives are
     * complete and {@link #drained} has returned true.
     */
    public abstract void enter();

    /** Rounds up the current step of all connections to a multiple of a chunk's steps. */
    final void enter(int chunkSteps) {
        for (ReceivePort port : from) {
            port.begin(chunkSteps);
        }
        for (SendPort port : to) {
            port.begin(chunkSteps);
        }
    }

    /**
     * Prepares the next primitive. The previous primitive must be {@link #complete}.
     *
     * @param inputElement  index of the first element that the primitive reads in the input
     * @param outputElement index of the first element that the primitive writes in the output
     */
    public abstract void begin(int kind, long inputElement, long outputElement, long elementCount);

    /**
     * Continues the current primitive until it is complete or a peer is not ready. Returns the number of slices moved.
     */
    public abstract int progress();

    /** Returns whether the next primitive may {@linkplain #begin begin}. */
    public abstract boolean complete();

    /**
     * Returns whether all peers and proxies have finished reading this rank's elements. Called after the last
     * primitive. The kernel may end only if the result is true.
     */
    public boolean drained() {
        return true;
    }

    /** Returns a text for messages: the peer that the primitive waits for, and the counters that were read last. */
    public final String waitingFor() {
        Port peer = waitedFor();
        return peer == null ? "no connection" : peer.toString();
    }

    /** Returns this rank's end of the first connection that the primitive waits for; null if all peers are ready. */
    abstract @Nullable Port waitedFor();

    /**
     * Returns the first of the given connections that is not ready; null if all are ready. A receiving connection is
     * ready if the next steps have arrived, and a sending connection if it has room for the next steps.
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
