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
 * Streams that were closed on purpose, and whose other end may not have read all. A socket that is closed with unread
 * bytes in it, or gets some later, resets its stream, and what is not with the other end by then is destroyed. So these
 * are read, and what comes is thrown away, until the other end closes, too, or for ten seconds. One thread of the
 * process does so, while there are any.
 */
final class LingeringStreams {

    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long AWAIT_MILLIS = 5_000;
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Of the thread that there is. */
    private static final ByteBuffer SCRATCH = ByteBuffer.allocateDirect(64 << 10);
    private static final int TURN_READS = 16;
    /** What lingers; the thread runs while there is anything. Guarded by itself. */
    private static final List<Stream> STREAMS = new ArrayList<>();

    private record Stream(OpenResources network, SocketChannel channel, long since) {

        /** Whether the other end has closed it, or nobody waits for that any longer. */
        boolean isOver(ByteBuffer scratch) {
            try {
                // Not decrypted: nobody wants to know what it says.
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

    /** Closes a stream on which all has been written: at once on this side, and in order. */
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
     * Waits, for some seconds at most, until the other ends of a network's streams have closed them: the process may
     * end then.
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
