package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsChannel;

/**
 * Input of one TCP stream. Even a read without data is a system call, and most reads of a thread with many streams
 * return no data. After several reads without data, a stream is therefore polled together with the other streams of its
 * thread ({@link ReadPoll}). From then on the stream is read only when it has data. Used by one thread at a time.
 */
final class StreamInput {

    /** Number of consecutive reads without data, after which the stream is polled together with others. */
    static final int TIMEOUT = 64;

    private final SocketChannel channel;
    /** The channel, if it uses TLS; null otherwise. A TLS channel may contain data that was read from TCP earlier. */
    private final @Nullable TlsChannel tls;
    /** Poll of the thread that made {@link #TIMEOUT} consecutive reads without data; null until then. */
    private volatile @Nullable ReadPoll poll;
    private int fruitless;
    private long reads;
    /** Newest round of the poll in which this stream was requested. Used by the poll only. */
    long round;
    /** Newest round of the poll in which this stream had data. Used by the poll only. */
    long readyIn = -1;

    public StreamInput(SocketChannel channel) {
        this.channel = channel;
        tls = channel instanceof TlsChannel encrypted ? encrypted : null;
    }

    /** Returns the channel that a selector can poll. */
    SelectableChannel channel() {
        return TlsChannel.selectable(channel);
    }

    /**
     * Reads once, into the remaining bytes of a buffer.
     *
     * @param more whether an earlier read in the same pass returned data; the stream is then read without a poll
     * @return number of bytes; 0 if no data has arrived; -1 at the end of the stream
     */
    public int read(ByteBuffer to, boolean more) throws IOException {
        ReadPoll joined = poll;
        if (joined != null && !more && (tls == null || !tls.hasInput()) && !joined.mayRead(this)) {
            return 0;
        }
        int read = channel.read(to);
        reads++;
        if (read != 0) {
            fruitless = 0;
        } else if (joined == null && ++fruitless == TIMEOUT) {
            poll = ReadPoll.ofThisThread();
            poll.join(this);
        }
        return read;
    }

    /** Returns the number of reads, including reads that returned no data. */
    long reads() {
        return reads;
    }

    /** Removes the stream from the poll before the stream is closed. Any thread may call this method repeatedly. */
    public void leave() {
        ReadPoll joined = poll;
        if (joined != null) {
            joined.leave(this);
        }
    }

    /**
     * Finds by one system call which streams of a thread have data. One poll serves one round. In a round each stream
     * is read at most once. This object does not know where a pass of the thread begins. It therefore begins a new
     * round when a stream is requested for the second time. If only one stream was requested in the previous round, the
     * stream is read without a poll: one system call is enough.
     *
     * <p>
     * Each thread has its own object, which is created at its first use. A thread that is not the owner, such as a
     * helping thread, reads the streams without a poll. Any thread may remove a stream.
     *
     * <p>
     * {@code sun.nio.ch.EPollSelectorImpl} finds a stream's key by the stream's descriptor, as an Integer. A poll
     * therefore allocates 16 bytes for each stream with data, if the JDK's cache of Integers does not contain the
     * descriptor. The cache ends at 127, or at 4095 in the plugin's JVM. A poll allocates nothing else.
     */
    static final class ReadPoll {

        private static final ThreadLocal<ReadPoll> OF_THREAD = ThreadLocal.withInitial(ReadPoll::new);
        private static final Consumer<SelectionKey> IGNORE = key -> {};

        private final Thread owner = Thread.currentThread();
        private final Consumer<SelectionKey> mark = key -> ((StreamInput) key.attachment()).readyIn = round();
        /**
         * The thread's streams. If the thread has at least two streams, each stream has a key of the selector. Guarded
         * by this object.
         */
        private final Map<StreamInput, @Nullable SelectionKey> members = new HashMap<>();
        /**
         * The selector of the streams. Written under the lock. The owner reads this field without the lock while it
         * serves one of the streams. The read is safe, because the selector is not closed while a stream remains.
         */
        private @Nullable Selector selector;

        private long round;
        /** Number of streams that were requested in this round. */
        private int asked;
        /** Whether this round began with a poll. */
        private boolean looked;
        private long looks;

        private ReadPoll() {}

        static ReadPoll ofThisThread() {
            return OF_THREAD.get();
        }

        private long round() {
            return round;
        }

        /** Returns the number of polls so far. */
        long looks() {
            return looks;
        }

        /** Returns whether a read of a stream may return data. */
        boolean mayRead(StreamInput input) {
            if (Thread.currentThread() != owner) {
                return true;
            }
            if (input.round == round) {
                boolean alone = asked <= 1;
                round++;
                asked = 0;
                looked = !alone && look();
            }
            input.round = round;
            asked++;
            return !looked || input.readyIn == round;
        }

        private boolean look() {
            Selector all = selector;
            if (all == null) {
                return false;
            }
            try {
                looks++;
                all.selectNow(mark);
                return true;
            } catch (IOException | ClosedSelectorException unusable) {
                // The streams are read without a poll. The result is the same, but each read is a system call.
                return false;
            }
        }

        /** Adds a stream. Called by the owner thread. */
        synchronized void join(StreamInput input) {
            members.put(input, null);
            input.round = round;
            if (members.size() < 2) {
                // A single stream is read without a poll.
                return;
            }
            try {
                if (selector == null) {
                    selector = Selector.open();
                }
                for (Map.Entry<StreamInput, @Nullable SelectionKey> member : members.entrySet()) {
                    if (member.getValue() == null) {
                        member.setValue(
                                member.getKey().channel().register(selector, SelectionKey.OP_READ, member.getKey()));
                    }
                }
            } catch (IOException unusable) {
                // No descriptor is free, or a stream is being closed. All streams are then read without a poll.
                closeSelector();
            }
        }

        /**
         * Removes a stream, so that the selector does not keep the descriptor when the stream is closed. Any thread may
         * call this method while no thread reads the stream.
         */
        synchronized void leave(StreamInput input) {
            SelectionKey key = members.remove(input);
            if (members.isEmpty()) {
                closeSelector();
            } else if (key != null && selector != null) {
                key.cancel();
                try {
                    selector.selectNow(IGNORE);
                } catch (IOException unusable) {
                    // The key is canceled. The next poll of the owner thread removes it from the selector.
                }
            }
        }

        private void closeSelector() {
            Selector last = selector;
            selector = null;
            members.replaceAll((input, key) -> null);
            try {
                if (last != null) {
                    last.close();
                }
            } catch (IOException e) {
                // A failure has no effect, because the selector is not used any longer.
            }
        }
    }
}
