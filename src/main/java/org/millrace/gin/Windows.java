package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A communicator's windows by handle: 1 for the first that was registered, 2 for the next. A handle is never used
 * again; what is kept is in proportion to the windows that are there.
 */
final class Windows {

    private static final Table EMPTY = new Table(new Window[2], 0);

    /** Replaced as a whole, so that the agent reads it without a lock. */
    private volatile Table table = EMPTY;

    /**
     * Open addressing: a window lies at its handle, or behind it; at least every second place is free.
     *
     * @param places a power of two of them
     * @param issued the last handle that was given to a window
     */
    private record Table(@Nullable Window[] places, long issued) {

        static Table of(List<Window> windows, long issued) {
            int size = Math.max(2, Integer.highestOneBit(Math.max(1, windows.size())) * 4);
            Table table = new Table(new Window[size], issued);
            for (Window window : windows) {
                int place = (int) window.handle() & size - 1;
                while (table.places[place] != null) {
                    place = place + 1 & size - 1;
                }
                table.places[place] = window;
            }
            return table;
        }

        @Nullable
        Window find(long handle) {
            int mask = places.length - 1;
            for (int place = (int) handle & mask;; place = place + 1 & mask) {
                Window window = places[place];
                if (window == null || window.handle() == handle) {
                    return window;
                }
            }
        }

        List<Window> windows() {
            List<Window> all = new ArrayList<>();
            for (Window window : places) {
                if (window != null) {
                    all.add(window);
                }
            }
            return all;
        }
    }

    /** Gives memory the next handle. */
    public synchronized Window add(WindowMemory memory) {
        Table now = table;
        Window window = new Window(now.issued + 1, memory);
        List<Window> all = now.windows();
        all.add(window);
        table = Table.of(all, window.handle());
        return window;
    }

    /** Takes a window out; false if it is not here any more. */
    public synchronized boolean remove(Window window) {
        Table now = table;
        if (now.find(window.handle()) != window) {
            return false;
        }
        List<Window> all = now.windows();
        all.remove(window);
        table = Table.of(all, now.issued);
        return true;
    }

    public @Nullable Window find(long handle) {
        return table.find(handle);
    }

    /** Whether a handle may still be given to a window. */
    public boolean isYetToCome(long handle) {
        return handle > table.issued;
    }

    /** Places that are kept for windows. */
    int capacity() {
        return table.places.length;
    }

    /** What there is, for messages. */
    public String describe(long handle) {
        long count = table.issued;
        return "window " + handle
                + (handle >= 1 && handle <= count ? " was closed" : " is not registered (there are " + count + ")");
    }
}
