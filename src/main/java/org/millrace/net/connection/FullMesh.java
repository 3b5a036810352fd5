package org.millrace.net.connection;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * The connections of a rank with all other ranks of its group. There is one connection in each direction for each pair
 * of ranks.
 *
 * @param senders   senders by the receiving rank; null for this rank
 * @param receivers receivers by the sending rank; null for this rank
 */
public record FullMesh(@Nullable FrameSender[] senders, @Nullable FrameReceiver[] receivers) implements AutoCloseable {

    private static final long POLL_NANOS = 50_000;

    /**
     * Establishes all connections of this rank concurrently. Every rank must call this method. Blocks until all
     * connections are established.
     *
     * @param network      network of the connections
     * @param here         this rank's listener; may be closed afterwards
     * @param addresses    addresses of all ranks' listeners, ordered by rank
     * @param rank         this rank
     * @param key          number that distinguishes these connections from other connections of the same listener;
     *                     equal on all ranks
     * @param communicator hash of the communicator for the process's trace; 0 if unknown
     * @param deadline     maximum time until all connections are established
     * @param abort        returns a reason to give up, or null; called repeatedly
     * @return the connections
     * @throws ConnectionException if the connections were not established in time; the message names the missing ranks
     */
    public static FullMesh connect(Network network, Listener here, byte[][] addresses, int rank, long key,
            long communicator, Duration deadline, Supplier<? extends @Nullable Throwable> abort) {
        PendingMesh mesh = new PendingMesh(network, here, addresses, rank, key);
        try (Pending<FullMesh> pending = new TracedPending<>(mesh, communicator, rank)) {
            long end = System.nanoTime() + deadline.toNanos();
            boolean late = false;
            FullMesh made = pending.poll();
            while (made == null) {
                Throwable reason = abort.get();
                if (reason != null) {
                    throw new ConnectionException("rank " + rank + " stops connecting: " + reason.getMessage(), reason);
                }
                if (late) {
                    throw new ConnectionException("rank " + rank + ": no connection with rank " + mesh.missing()
                            + " within " + deadline.toMillis() + " ms");
                }
                Waiting.pause(POLL_NANOS);
                // The time is read before the poll. A connection that fails in the final poll therefore reports the
                // reason of this failure and not the timeout.
                late = end - System.nanoTime() < 0;
                made = pending.poll();
            }
            return made;
        }
    }

    /**
     * Begins to establish all connections of this rank concurrently. Every rank must call this method. The parameters
     * have the same meaning as in {@link #connect}, but the listener must stay open until all connections are
     * established.
     */
    public static Pending<FullMesh> begin(Network network, Listener here, byte[][] addresses, int rank, long key,
            long communicator) {
        return new TracedPending<>(new PendingMesh(network, here, addresses, rank, key), communicator, rank);
    }

    /** Closes all established connections. */
    @Override
    public void close() {
        for (int peer = 0; peer < senders.length; peer++) {
            close(senders[peer]);
            close(receivers[peer]);
        }
    }

    private static void close(@Nullable AutoCloseable closeable) {
        try {
            if (closeable != null) {
                closeable.close();
            }
        } catch (Exception e) {
            // The failure is ignored, so that the other connections are closed, too. If an earlier failure led to this
            // close, the caller throws the earlier failure.
        }
    }

    /** All connections of a rank, each either pending or established. */
    private static final class PendingMesh implements Pending<FullMesh> {

        private final int rank;
        private final FullMesh mesh;
        private final @Nullable Pending<FrameSender>[] connecting;
        private final @Nullable Pending<FrameReceiver>[] accepting;
        private boolean over;

        @SuppressWarnings({"unchecked", "rawtypes"})
        PendingMesh(Network network, Listener here, byte[][] addresses, int rank, long key) {
            int ranks = addresses.length;
            this.rank = rank;
            mesh = new FullMesh(new FrameSender[ranks], new FrameReceiver[ranks]);
            connecting = new Pending[ranks];
            accepting = new Pending[ranks];
            boolean begun = false;
            try {
                for (int peer = 0; peer < ranks; peer++) {
                    if (peer != rank) {
                        accepting[peer] = here.expect(pair(key, peer, rank));
                        connecting[peer] = begin(network, addresses[peer], peer, key);
                    }
                }
                begun = true;
            } finally {
                if (!begun) {
                    close();
                }
            }
        }

        private static ConnectionKey pair(long key, int from, int to) {
            return new ConnectionKey(key, (long) from << Integer.SIZE | to);
        }

        private Pending<FrameSender> begin(Network network, byte[] address, int peer, long key) {
            try {
                return network.connect(address, pair(key, rank, peer));
            } catch (MillraceException failed) {
                throw cannot(peer, failed);
            }
        }

        private ConnectionException cannot(int peer, MillraceException failed) {
            return new ConnectionException(
                    "rank " + rank + " cannot connect to rank " + peer + ": " + failed.getMessage(), failed);
        }

        @Override
        public @Nullable FullMesh poll() {
            boolean complete = true;
            for (int peer = 0; peer < connecting.length; peer++) {
                if (peer != rank) {
                    try {
                        mesh.senders[peer] = mesh.senders[peer] == null ? connecting[peer].poll() : mesh.senders[peer];
                        mesh.receivers[peer] =
                                mesh.receivers[peer] == null ? accepting[peer].poll() : mesh.receivers[peer];
                    } catch (MillraceException failed) {
                        throw cannot(peer, failed);
                    }
                    complete &= mesh.senders[peer] != null && mesh.receivers[peer] != null;
                }
            }
            over |= complete;
            return complete ? mesh : null;
        }

        /** Describes the first missing connection. */
        @Override
        public String describe() {
            int peer = 0;
            while (peer == rank || mesh.senders[peer] != null && mesh.receivers[peer] != null) {
                peer++;
            }
            return "of the connections with all ranks, those with rank " + missing() + " are missing: "
                    + (mesh.senders[peer] == null ? connecting[peer] : accepting[peer]).describe();
        }

        String missing() {
            StringBuilder missing = new StringBuilder();
            for (int peer = 0; peer < connecting.length; peer++) {
                if (peer != rank && (mesh.senders[peer] == null || mesh.receivers[peer] == null)) {
                    missing.append(missing.isEmpty() ? "" : ", ").append(peer);
                }
            }
            return missing.toString();
        }

        @Override
        public void close() {
            for (int peer = 0; peer < connecting.length; peer++) {
                FullMesh.close(connecting[peer]);
                FullMesh.close(accepting[peer]);
            }
            if (!over) {
                over = true;
                mesh.close();
            }
        }
    }
}
