package org.millrace.bench.jvm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/**
 * Messages of one rank, by one library. A class that implements this interface has a public constructor with a
 * {@link Meeting}. One thread uses an object of the class.
 */
public interface Messages extends AutoCloseable {

    /** {@return memory of sent elements} */
    MemorySegment sent();

    /** {@return memory of received elements and sums} */
    MemorySegment received();

    /**
     * Sends the first bytes of {@link #sent} to the other of two ranks. The rank must not change them before
     * {@link #flush}.
     *
     * @param bytes length, a multiple of 4
     * @throws IOException if the other rank is lost
     */
    void send(int bytes) throws IOException;

    /**
     * Receives a message of the other rank and stores the message in {@link #received}.
     *
     * @param bytes length of the message
     * @throws IOException if the other rank is lost
     */
    void receive(int bytes) throws IOException;

    /** Waits until sent messages are out of {@link #sent}. */
    default void flush() {}

    /** {@return whether {@link #allReduce} exists} */
    default boolean reduces() {
        return false;
    }

    /**
     * Adds the floats in {@link #sent} of all ranks, and stores the sums in {@link #received}.
     *
     * @param bytes length of the operand
     * @throws IOException if another rank is lost
     */
    default void allReduce(int bytes) throws IOException {
        throw new UnsupportedOperationException(getClass().getSimpleName() + " has no all-reduce");
    }

    @Override
    void close() throws IOException;
}
