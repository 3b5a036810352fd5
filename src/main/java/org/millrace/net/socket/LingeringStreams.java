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
 * Lingering streams: streams on which this process has sent a shutdown message, although the peer has perhaps not read
 * all data. The operating system resets a stream if its socket is closed with unread bytes, or if bytes arrive after
 * the close. The peer then loses data that it has not read. Therefore these streams are still read, and their input is
 * discarded. A stream is read until the peer also closes it, but for at most ten seconds. A single thread of the
 * process reads them, and ends when no such stream remains.
 */
final class LingeringStreams {

    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long AWAIT_MILLIS = 5_000;
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Buffer for discarded input, used by the reading thread only. */
    private static final ByteBuffer SCRATCH = ByteBuffer.allocateDirect(64 << 10);
    private static final int TURN_READS = 16;
    /** The lingering streams. The reading thread exists while this list is not empty. Guarded by the list's monitor. */
    private static final List<Stream> STREAMS = new ArrayList<>();

    private record Stream(OpenResources network, SocketChannel channel, long since) {

        /** Returns whether the stream has ended: the peer has closed it, or the time limit has passed. */
        boolean isOver(ByteBuffer scratch) {
            try {
                // The input is discarded, so it need not be decrypted.
                SocketChannel raw = (SocketChannel) TlsChannel.selectable(channel);
                for (int i = 0; i < TURN_READS; i++) {
                    int read = raw.read(scratch.clear());
                    if (read <= 0) {
                        return read < 0 || System.nanoTime() - since > MAX_NANOS;
                    }
                }
                return System.nanoTime() - since > MAX_NANOS;
            } catch (IOException gone) {
                return true;
            }
        }
    }

    private LingeringStreams() {}

    /** Closes the output of a stream after all data was written, and lets the stream linger. Does not wait. */
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

    /** Waits a few seconds at most for peers to close a network's lingering streams. The process may end afterwards. */
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
