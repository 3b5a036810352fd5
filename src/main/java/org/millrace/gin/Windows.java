package org.millrace.gin;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The windows of a communicator, found by their handles. The first registered window has the handle 1, and the second
 * window has the handle 2. A handle is never reused. The size of the table is proportional to the number of open
 * windows.
 */
final class Windows {

    private static final Table EMPTY = new Table(new Window[2], 0);

    /** The current table. A change replaces the whole table, so that the agent reads it without a lock. */
    private volatile Table table = EMPTY;

    /**
     * A hash table with open addressing. The search for a window begins at the index that its handle selects and
     * continues with the following indices. At least half of the elements are null.
     *
     * @param places array of windows, with null for unused elements; its length is a power of two
     * @param issued handle of the last registered window
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

    /** Registers memory as a window with the next handle. */
    public synchronized Window add(WindowMemory memory) {
        Table now = table;
        Window window = new Window(now.issued + 1, memory);
        List<Window> all = now.windows();
        all.add(window);
        table = Table.of(all, window.handle());
        return window;
    }

    /** Removes a window. Returns false if the window was already removed. */
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

    /** Returns whether a handle has not been assigned yet. A later window may then receive the handle. */
    public boolean isYetToCome(long handle) {
        return handle > table.issued;
    }

    /** Returns the length of the table's array. */
    int capacity() {
        return table.places.length;
    }

    /** Returns a message that a handle's window was closed, or that no window with this handle was registered. */
    public String describe(long handle) {
        long count = table.issued;
        return "window " + handle
                + (handle >= 1 && handle <= count ? " was closed" : " is not registered (there are " + count + ")");
    }
}
