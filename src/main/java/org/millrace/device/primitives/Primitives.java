package org.millrace.device.primitives;

/**
 * NCCL's primitives: send, receive and combinations of them, one chunk at a time, whatever the protocol. A primitive
 * that must wait gives up the thread and goes on where it was.
 */
public interface Primitives {

    /** The primitive takes a slice from each peer before. */
    int RECEIVE = 1;
    /** The primitive posts a slice to each peer behind. */
    int SEND = 2;
    /** The primitive reads this rank's input. */
    int INPUT = 4;
    /** The primitive writes this rank's output. */
    int OUTPUT = 8;
    /** The reduction is complete after this primitive. */
    int LAST = 16;

    /** Enters the kernel. */
    void enter();

    /**
     * Sets up the next primitive, from an element of the input and to an element of the output on; the one before must
     * be complete.
     */
    void begin(int kind, long inputElement, long outputElement, long elementCount);

    /** Works on until the primitive is complete or a peer is not ready; returns the number of slices moved. */
    int progress();

    /** Whether {@link #begin} may be called. */
    boolean complete();

    /** Whether nobody reads this rank's elements any more, after the last primitive: then the kernel may end. */
    default boolean drained() {
        return true;
    }

    /** Which peer the primitive waits for, with what was last seen. */
    String waitingFor();
}
