package org.millrace.device.stream;

import java.util.ArrayDeque;
import java.util.Queue;
import org.millrace.Event;
import org.millrace.MillraceException;

/**
 * What a host does when events are reached, in the order in which it was asked for: a later callback waits for the
 * earlier ones, whatever its own event says. Nobody calls them but {@link #poll}. One thread at a time.
 */
public final class EventCallbacks {

    private record Callback(Event event, Runnable action) {
    }

    private final Queue<Callback> pending = new ArrayDeque<>();

    /** Nothing is to be done. */
    public EventCallbacks() {}

    /**
     * Adds a callback.
     *
     * @param event  when; given back before the call
     * @param action what to do
     */
    public void add(Event event, Runnable action) {
        pending.add(new Callback(event, action));
    }

    /**
     * Calls those whose turn it is. An event behind work that failed counts as reached: nothing runs before it any
     * more.
     *
     * @return how many were called
     */
    public int poll() {
        int called = 0;
        while (!pending.isEmpty() && reached(pending.peek().event)) {
            Callback callback = pending.remove();
            callback.event.close();
            callback.action.run();
            called++;
        }
        return called;
    }

    private static boolean reached(Event event) {
        try {
            return event.query();
        } catch (MillraceException workFailed) {
            return true; // the stream tells those who wait for the work
        }
    }

    /** Gives all events back, and calls nothing: for whoever knows that there is nothing left to do. */
    public void clear() {
        while (!pending.isEmpty()) {
            pending.remove().event.close();
        }
    }
}
