package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;

/** Negotiation of a new ring's two ends about large payloads that stay in the sender's memory. */
final class SingleCopyHandshake {

    private SingleCopyHandshake() {}

    /** Stores the producer's invitation, before the consumer knows the ring. */
    public static void invite(RingMemory ring, ShmOptions options) {
        RingLayout.invite(ring, options.singleCopy().invite(), options.singleCopy().fromBytes());
    }

    /**
     * Checks whether the consumer can and should read the producer's memory, and stores the answer, before its reply.
     *
     * @return null if all payloads pass the ring
     * @throws SingleCopy.SingleCopyException if it cannot, and this side requires it
     */
    public static @Nullable PeerMemory answer(RingMemory ring, ShmOptions options, ProcessIdentity producer) {
        PeerMemory memory = options.singleCopy().open(producer, RingLayout.cookie(ring));
        ring.putLongRelease(RingLayout.CONSUMER_READS, memory == null ? 0 : 1);
        return memory;
    }

    /** Checks the consumer's answer after its reply. Throws if it does not read, and this side requires it. */
    public static void check(RingMemory ring, ShmOptions options, String connection) {
        if (!isRead(ring)) {
            options.singleCopy().declined(connection);
        }
    }

    /** Returns whether the consumer reads payloads in the producer's memory. */
    static boolean isRead(RingMemory ring) {
        return ring.getLongAcquire(RingLayout.CONSUMER_READS) == 1;
    }
}
