package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;

/** Agreement of a new ring's two ends on whether large payloads stay in the sender's memory. */
final class SingleCopyHandshake {

    private SingleCopyHandshake() {}

    /** Stores the producer's invitation in the ring. Must be called before the consumer opens the ring. */
    public static void invite(RingMemory ring, ShmOptions options) {
        RingLayout.invite(ring, options.singleCopy().invite(), options.singleCopy().fromBytes());
    }

    /**
     * Determines whether the consumer can and should read the producer's memory, and stores the answer in the ring.
     * Must be called before the consumer replies to the hello.
     *
     * @return reader of the producer's memory; null if all payloads pass through the ring
     * @throws SingleCopy.SingleCopyException if single copies are not possible, and the consumer requires them
     */
    public static @Nullable PeerMemory answer(RingMemory ring, ShmOptions options, ProcessIdentity producer) {
        PeerMemory memory = options.singleCopy().open(producer, RingLayout.cookie(ring));
        ring.putLongRelease(RingLayout.CONSUMER_READS, memory == null ? 0 : 1);
        return memory;
    }

    /**
     * Checks the consumer's answer. Must be called after the consumer's reply.
     *
     * @throws SingleCopy.SingleCopyException if the consumer does not read the memory, and the producer requires single
     *                                        copies
     */
    public static void check(RingMemory ring, ShmOptions options, String connection) {
        if (!isRead(ring)) {
            options.singleCopy().declined(connection);
        }
    }

    /** Returns whether the consumer reads large payloads in the producer's memory. */
    static boolean isRead(RingMemory ring) {
        return ring.getLongAcquire(RingLayout.CONSUMER_READS) == 1;
    }
}
