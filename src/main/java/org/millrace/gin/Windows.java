package org.millrace.gin;

import java.util.Arrays;

/**
 * A communicator's windows by handle: 1 for the first that was registered, 2 for the next. A handle is never used
 * again.
 */
final class Windows {

    /** Replaced as a whole, so that the agent reads it without a lock. */
    private volatile Window[] all = {};

    synchronized Window add(WindowMemory memory) {
        Window[] longer = Arrays.copyOf(all, all.length + 1);
        Window window = new Window(longer.length, memory);
        longer[longer.length - 1] = window;
        all = longer;
        return window;
    }

    synchronized boolean remove(Window window) {
        int index = (int) window.handle() - 1;
        if (index >= all.length || all[index] != window) {
            return false;
        }
        Window[] copy = all.clone();
        copy[index] = null;
        all = copy;
        return true;
    }

    /** The window of a handle, or null. */
    Window find(long handle) {
        Window[] windows = all;
        return handle >= 1 && handle <= windows.length ? windows[(int) handle - 1] : null;
    }

    /** Whether a handle may still be given to a window. */
    boolean isYetToCome(long handle) {
        return handle > all.length;
    }

    /** What there is, for messages. */
    String describe(long handle) {
        int count = all.length;
        return "window " + handle
                + (handle >= 1 && handle <= count ? " was closed" : " is not registered (there are " + count + ")");
    }
}
