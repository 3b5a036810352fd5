package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A communicator's windows by handle: 1 for the first that was registered, 2 for the next. A handle is never reused.
 * The size of the table is proportional to the number of open windows.
 */
final class Windows {

    private static final Table EMPTY = new Table(new Window[2], 0);

    /** The current table. It is replaced as a whole, so that the agent reads it without a lock. */
    private volatile Table table = EMPTY;

    /**
     * A hash table with open addressing. A window lies at its handle, or after it. At least every second place is free.
     *
     * @param places a power of two of places
     * @param issued the last handle that was assigned to a window
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

    /** Assigns the next handle to memory. */
    public synchronized Window add(WindowMemory memory) {
        Table now = table;
        Window window = new Window(now.issued + 1, memory);
        List<Window> all = now.windows();
        all.add(window);
        table = Table.of(all, window.handle());
        return window;
    }

    /** Removes a window. Returns false if it was already removed. */
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

    /** Returns whether a handle may still be assigned to a window. */
    public boolean isYetToCome(long handle) {
        return handle > table.issued;
    }

    /** Returns the number of places in the table. */
    int capacity() {
        return table.places.length;
    }

    /** Describes for messages the windows that exist. */
    public String describe(long handle) {
        long count = table.issued;
        return "window " + handle
                + (handle >= 1 && handle <= count ? " was closed" : " is not registered (there are " + count + ")");
    }
}
