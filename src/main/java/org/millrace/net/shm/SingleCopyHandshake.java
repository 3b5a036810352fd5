package org.millrace.net.shm;

import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;

/** How the two ends of a ring that is new agree on whether large payloads are left in the sender's memory. */
final class SingleCopyHandshake {

    private SingleCopyHandshake() {}

    /** The producer says how it can be read, before the consumer knows of the ring. */
    public static void invite(RingMemory ring, ShmOptions options) {
        RingLayout.invite(ring, options.singleCopy().invite(), options.singleCopy().fromBytes());
    }

    /**
     * The consumer finds out whether it can and is to read the producer's memory, and says so, before it replies.
     *
     * @return null if all payloads go through the ring
     * @throws SingleCopy.SingleCopyException if it cannot, and this side requires it
     */
    public static @Nullable PeerMemory answer(RingMemory ring, ShmOptions options, ProcessIdentity producer) {
        PeerMemory memory = options.singleCopy().open(producer, RingLayout.cookie(ring));
        ring.putLongRelease(RingLayout.CONSUMER_READS, memory == null ? 0 : 1);
        return memory;
    }

    /** The producer has the consumer's reply: throws if that does not read, and this side requires it. */
    public static void check(RingMemory ring, ShmOptions options, String connection) {
        if (!isRead(ring)) {
            options.singleCopy().declined(connection);
        }
    }

    /** Whether the consumer reads payloads in the producer's memory. */
    static boolean isRead(RingMemory ring) {
        return ring.getLongAcquire(RingLayout.CONSUMER_READS) == 1;
    }
}
