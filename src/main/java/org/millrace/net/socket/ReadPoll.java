package org.millrace.net.socket;

import java.io.IOException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Finds by one call which of the streams that a thread polls have something to read. The streams need not know where a
 * pass of the thread begins: a round lasts until a stream is asked for a second time, which is when the thread looks
 * again at all of them. A stream that nobody else was asked for since is read without a look: the read tells as much.
 *
 * <p>
 * Each thread has its own, made when it is first needed. A stream that another thread reads meanwhile, as one that
 * helps does, is read without a look. Streams leave on any thread.
 *
 * <p>
 * A look allocates nothing, but for 16 bytes for each stream that is found ready and whose descriptor is beyond the
 * JDK's cache of Integers (127, in the plugin's JVM 4095): {@code sun.nio.ch.EPollSelectorImpl} looks keys up by them.
 */
final class ReadPoll {

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
            // without a descriptor to spare, or with a stream that is closed just now, streams are read without a look
            closeSelector();
        }
    }

    /**
     * Removes a stream, so that nothing holds its descriptor back when it is closed next. Called by any thread, when
     * nobody reads the stream any more.
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
