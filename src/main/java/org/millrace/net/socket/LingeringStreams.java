package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.connection.TlsChannel;

/**
 * Streams that were closed deliberately, after a shutdown message, while the peer may not have read all data. Closing a
 * socket with unread bytes, or bytes that arrive later, resets its stream, and data that the peer has not received is
 * lost. These streams are therefore read, and the input is discarded, until the peer closes, too, or for ten seconds.
 * One thread of the process does so, as long as such streams exist.
 */
final class LingeringStreams {

    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long AWAIT_MILLIS = 5_000;
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Buffer of the single thread. */
    private static final ByteBuffer SCRATCH = ByteBuffer.allocateDirect(64 << 10);
    private static final int TURN_READS = 16;
    /** The lingering streams; the thread runs while the list is not empty. Guarded by itself. */
    private static final List<Stream> STREAMS = new ArrayList<>();

    private record Stream(OpenResources network, SocketChannel channel, long since) {

        /** Returns whether the peer has closed the stream, or the time is over. */
        boolean isOver(ByteBuffer scratch) {
            try {
                // The content is discarded, so it is not decrypted.
                SocketChannel raw = (SocketChannel) TlsChannel.selectable(channel);
                for (int i = 0; i < TURN_READS; i++) {
                    int read = raw.read(scratch.clear());
                    if (read <= 0) {
                        return read < 0 || System.nanoTime() - since > MOST_NANOS;
                    }
                }
                return System.nanoTime() - since > MOST_NANOS;
            } catch (IOException gone) {
                return true;
            }
        }
    }

    private LingeringStreams() {}

    /** Closes a stream after all data was written: at once on this side, and in order. */
    static void close(OpenResources network, SocketChannel channel) {
        try {
            channel.shutdownOutput();
        } catch (IOException gone) {
            ConnectionState.closeQuietly(channel);
            return;
        }
        synchronized (STREAMS) {
            STREAMS.add(new Stream(network, channel, System.nanoTime()));
            if (STREAMS.size() == 1) {
                Thread.ofPlatform().daemon().name("millrace-disconnect").start(LingeringStreams::run);
            }
        }
    }

    private static void run() {
        while (true) {
            List<Stream> now;
            synchronized (STREAMS) {
                now = List.copyOf(STREAMS);
            }
            List<Stream> over = now.stream().filter(stream -> stream.isOver(SCRATCH)).toList();
            over.forEach(stream -> ConnectionState.closeQuietly(stream.channel));
            synchronized (STREAMS) {
                STREAMS.removeAll(over);
                STREAMS.notifyAll();
                if (STREAMS.isEmpty()) {
                    return;
                }
            }
            LockSupport.parkNanos(STEP_NANOS);
        }
    }

    /**
     * Waits, for some seconds at most, until the peers of a network's streams have closed them. The process may end
     * afterwards.
     */
    static void await(OpenResources network) {
        long begin = System.nanoTime();
        synchronized (STREAMS) {
            while (STREAMS.stream().anyMatch(stream -> stream.network == network)) {
                long left = AWAIT_MILLIS - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
                if (left <= 0) {
                    return;
                }
                try {
                    STREAMS.wait(left);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return;
                }
            }
        }
    }
}
