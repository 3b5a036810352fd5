package org.millrace.gin.agent;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.gin.GinException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * The connections of a communicator: one each way between every two ranks.
 *
 * @param senders   to each rank; null for this one
 * @param receivers from each rank; likewise
 */
public record GinMesh(@Nullable FrameSender[] senders, @Nullable FrameReceiver[] receivers) implements AutoCloseable {

    private static final long POLL_NANOS = 50_000;

    /**
     * Makes the connections, all at once. Every rank calls it; it blocks until all are made.
     *
     * @param here  where the others connect to; may be closed afterwards
     * @param key   tells the communicator from others of the same listener, the same on every rank
     * @param abort a reason to give up, if there is one; asked again and again
     * @throws GinException if they were not made in time; the message names the ranks that are missing
     */
    public static GinMesh connect(Network network, Listener here, byte[][] addresses, int rank, long key,
            Duration deadline, Supplier<? extends @Nullable Throwable> abort) {
        int ranks = addresses.length;
        GinMesh mesh = new GinMesh(new FrameSender[ranks], new FrameReceiver[ranks]);
        @SuppressWarnings({"unchecked", "rawtypes"})
        Pending<FrameSender>[] connecting = new Pending[ranks];
        @SuppressWarnings({"unchecked", "rawtypes"})
        Pending<FrameReceiver>[] accepting = new Pending[ranks];
        boolean complete = false;
        try {
            for (int peer = 0; peer < ranks; peer++) {
                if (peer != rank) {
                    accepting[peer] = here.expect(pair(key, peer, rank));
                    connecting[peer] = begin(network, addresses[peer], rank, peer, key);
                }
            }
            long end = System.nanoTime() + deadline.toNanos();
            while (!mesh.poll(rank, connecting, accepting)) {
                mesh.stopIf(rank, abort.get(), end, deadline);
                LockSupport.parkNanos(POLL_NANOS);
            }
            complete = true;
            return mesh;
        } finally {
            for (int peer = 0; peer < ranks; peer++) {
                close(connecting[peer]);
                close(accepting[peer]);
            }
            if (!complete) {
                mesh.close();
            }
        }
    }

    /** Ends all connections that were made. */
    @Override
    public void close() {
        for (int peer = 0; peer < senders.length; peer++) {
            close(senders[peer]);
            close(receivers[peer]);
        }
    }

    private static ConnectionKey pair(long key, int from, int to) {
        return new ConnectionKey(key, (long) from << Integer.SIZE | to);
    }

    private static Pending<FrameSender> begin(Network network, byte[] address, int rank, int peer, long key) {
        try {
            return network.connect(address, pair(key, rank, peer));
        } catch (MillraceException failed) {
            throw cannot(rank, peer, failed);
        }
    }

    private static GinException cannot(int rank, int peer, MillraceException failed) {
        return new GinException("rank " + rank + " cannot connect to rank " + peer + ": " + failed.getMessage(),
                failed);
    }

    private boolean poll(int rank, Pending<FrameSender>[] connecting, Pending<FrameReceiver>[] accepting) {
        boolean complete = true;
        for (int peer = 0; peer < senders.length; peer++) {
            if (connecting[peer] != null) {
                try {
                    senders[peer] = senders[peer] == null ? connecting[peer].poll() : senders[peer];
                    receivers[peer] = receivers[peer] == null ? accepting[peer].poll() : receivers[peer];
                } catch (MillraceException failed) {
                    throw cannot(rank, peer, failed);
                }
                complete &= senders[peer] != null && receivers[peer] != null;
            }
        }
        return complete;
    }

    private void stopIf(int rank, @Nullable Throwable reason, long end, Duration deadline) {
        if (reason != null) {
            throw new GinException("rank " + rank + " gives up connecting: " + reason.getMessage(), reason);
        }
        if (end - System.nanoTime() < 0) {
            StringBuilder missing = new StringBuilder();
            for (int peer = 0; peer < senders.length; peer++) {
                if (peer != rank && (senders[peer] == null || receivers[peer] == null)) {
                    missing.append(missing.isEmpty() ? "" : ", ").append(peer);
                }
            }
            throw new GinException("rank " + rank + ": no GIN connection with rank " + missing + " within "
                    + deadline.toMillis() + " ms");
        }
    }

    private static void close(@Nullable AutoCloseable closeable) {
        try {
            if (closeable != null) {
                closeable.close();
            }
        } catch (Exception e) {
            // what made us give up is the one to report
        }
    }
}
