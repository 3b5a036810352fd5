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
 * What arrives on one TCP stream. A read that finds nothing is a system call too, and a thread that polls many streams
 * makes most of its calls so: a stream on which nothing comes for a while is looked at together with the thread's other
 * streams ({@link ReadPoll}), and read when it has something. One thread at a time.
 */
final class StreamInput {

    /** Reads in a row that found nothing, after which the stream is looked at together with others. */
    static final int PATIENCE = 64;

    private final SocketChannel channel;
    /** The same, if it is under TLS: it may hold what came before. */
    private final @Nullable TlsChannel tls;
    /** That of the thread which had patience; null as long as there is none. */
    private volatile @Nullable ReadPoll poll;
    private int fruitless;
    private long reads;
    /** The round of the poll in which this stream was last asked for: the poll's. */
    long round;
    /** The round in which it was last found to have something: the poll's. */
    long readyIn = -1;

    public StreamInput(SocketChannel channel) {
        this.channel = channel;
        tls = channel instanceof TlsChannel encrypted ? encrypted : null;
    }

    /** What a selector looks at. */
    SelectableChannel channel() {
        return TlsChannel.selectable(channel);
    }

    /**
     * Reads once what has arrived, into what is left of a buffer.
     *
     * @param more whether there may be more, as this pass has just read something: it costs no second look
     * @return how many bytes; 0 if none has arrived; -1 at the end of the stream
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

    /** How many calls have read, those that found nothing among them. */
    long reads() {
        return reads;
    }

    /** Before the stream is closed. Safe from any thread, and more than once. */
    public void leave() {
        ReadPoll joined = poll;
        if (joined != null) {
            joined.leave(this);
        }
    }

    /**
     * Finds by one call which of the streams that a thread polls have something to read. The streams need not know
     * where a pass of the thread begins: a round lasts until a stream is asked for a second time, which is when the
     * thread looks again at all of them. A stream that nobody else was asked for since is read without a look: the read
     * tells as much.
     *
     * <p>
     * Each thread has its own, made when it is first needed. A stream that another thread reads meanwhile, as one that
     * helps does, is read without a look. Streams leave on any thread.
     *
     * <p>
     * A look allocates nothing, but for 16 bytes for each stream that is found ready and whose descriptor is beyond the
     * JDK's cache of Integers (127, in the plugin's JVM 4095): {@code sun.nio.ch.EPollSelectorImpl} looks keys up by
     * them.
     */
    static final class ReadPoll {

        private static final ThreadLocal<ReadPoll> OF_THREAD = ThreadLocal.withInitial(ReadPoll::new);
        private static final Consumer<SelectionKey> IGNORE = key -> {};

        private final Thread owner = Thread.currentThread();
        private final Consumer<SelectionKey> mark = key -> ((StreamInput) key.attachment()).readyIn = round();
        /** Guarded by this: the streams; their keys once there are two. */
        private final Map<StreamInput, @Nullable SelectionKey> members = new HashMap<>();
        /**
         * Written with the lock. The owner reads it without one, for a stream that is a member: it is not closed while
         * there are any.
         */
        private @Nullable Selector selector;

        private long round;
        /** How many streams were asked for in this round. */
        private int asked;
        /** Whether this round began with a look. */
        private boolean looked;
        private long looks;

        private ReadPoll() {}

        static ReadPoll ofThisThread() {
            return OF_THREAD.get();
        }

        private long round() {
            return round;
        }

        /** How many calls have looked at all streams. */
        long looks() {
            return looks;
        }

        /** Whether a read of a stream may find something. */
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
                return false; // reads tell as much, at their price
            }
        }

        /** Adds a stream; called by the owner. */
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
                // without a descriptor to spare, or with a stream that is closed just now, streams are read without a
                // look
                closeSelector();
            }
        }

        /**
         * Removes a stream, so that nothing holds its descriptor back when it is closed next. Called by any thread,
         * when nobody reads the stream any more.
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
                    // the owner's next look lets go of it
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
                // nothing depends on it any more
            }
        }
    }
}
