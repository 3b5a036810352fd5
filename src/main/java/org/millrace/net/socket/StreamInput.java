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
 * Input of one TCP stream. A read without data is a system call, too, and most calls of a thread that polls many
 * streams are such reads. A stream without data for a while is therefore polled together with the thread's other
 * streams ({@link ReadPoll}), and read when it has data. One thread at a time.
 */
final class StreamInput {

    /** Number of consecutive reads without data after which the stream is polled together with others. */
    static final int PATIENCE = 64;

    private final SocketChannel channel;
    /** The same channel, if it is under TLS: it may hold earlier data. */
    private final @Nullable TlsChannel tls;
    /** Poll of the thread that made {@link #PATIENCE} reads without data in a row; null before that. */
    private volatile @Nullable ReadPoll poll;
    private int fruitless;
    private long reads;
    /** Last round of the poll with a request for this stream; owned by the poll. */
    long round;
    /** Last round in which it was ready; owned by the poll. */
    long readyIn = -1;

    public StreamInput(SocketChannel channel) {
        this.channel = channel;
        tls = channel instanceof TlsChannel encrypted ? encrypted : null;
    }

    /** Returns the channel for a selector. */
    SelectableChannel channel() {
        return TlsChannel.selectable(channel);
    }

    /**
     * Reads once, into the rest of a buffer.
     *
     * @param more whether more data may be available because this pass has just read some; this saves a second poll
     * @return number of bytes; 0 if none has arrived; -1 at the end of the stream
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
        } else if (joined == null && ++fruitless == PATIENCE) {
            poll = ReadPoll.ofThisThread();
            poll.join(this);
        }
        return read;
    }

    /** Returns the number of reads, including those without data. */
    long reads() {
        return reads;
    }

    /** Called before the stream is closed. Safe from any thread, and repeatedly. */
    public void leave() {
        ReadPoll joined = poll;
        if (joined != null) {
            joined.leave(this);
        }
    }

    /**
     * Finds by one call the readable streams among a thread's streams. The streams need not know where the thread's
     * pass begins. A round lasts until a stream is requested for a second time; then the thread polls all of them
     * again. A stream that is requested repeatedly without any other is read without a poll, because the read has the
     * same result.
     *
     * <p>
     * Each thread has its own, created at its first use. A stream that another thread reads meanwhile, such as a
     * helping thread, is read without a poll. Streams leave on any thread.
     *
     * <p>
     * A poll allocates 16 bytes for each ready stream with a descriptor beyond the JDK's cache of Integers (127, in the
     * plugin's JVM 4095). The reason is that {@code sun.nio.ch.EPollSelectorImpl} looks up keys by them. It allocates
     * nothing else.
     */
    static final class ReadPoll {

        private static final ThreadLocal<ReadPoll> OF_THREAD = ThreadLocal.withInitial(ReadPoll::new);
        private static final Consumer<SelectionKey> IGNORE = key -> {};

        private final Thread owner = Thread.currentThread();
        private final Consumer<SelectionKey> mark = key -> ((StreamInput) key.attachment()).readyIn = round();
        /** The streams, with keys from two streams on. Guarded by this. */
        private final Map<StreamInput, @Nullable SelectionKey> members = new HashMap<>();
        /**
         * Written with the lock. The owner reads it without the lock for a member stream: it is not closed while
         * members exist.
         */
        private @Nullable Selector selector;

        private long round;
        /** Number of streams requested in this round. */
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

        /** Returns the number of polls of all streams. */
        long looks() {
            return looks;
        }

        /** Returns whether a read of a stream may find data. */
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
                return false; // reads have the same result, at their price
            }
        }

        /** Adds a stream. Called by the owner. */
        synchronized void join(StreamInput input) {
            members.put(input, null);
            input.round = round;
            if (members.size() < 2) {
                return; // a thread with one stream spins on it
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
                // without a free descriptor, or with a stream that is being closed, streams are read without a poll
                closeSelector();
            }
        }

        /**
         * Removes a stream, so that nothing retains its descriptor when it is closed next. Called by any thread, when
         * no thread reads the stream.
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
                    // the owner's next poll releases it
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
                // nothing depends on it any longer
            }
        }
    }
}
