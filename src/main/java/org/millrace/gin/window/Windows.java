package org.millrace.gin.window;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A communicator's windows by handle: 1 for the first that was registered, 2 for the next. A handle is never used
 * again.
 */
public final class Windows {

    /** Replaced as a whole, so that the agent reads it without a lock. */
    private volatile @Nullable Window[] all = {};

    /** Gives memory the next handle. */
    public synchronized Window add(WindowMemory memory) {
        @Nullable
        Window[] longer = Arrays.copyOf(all, all.length + 1);
        Window window = new Window(longer.length, memory);
        longer[longer.length - 1] = window;
        all = longer;
        return window;
    }

    /** Takes a window out; false if it is not here any more. */
    public synchronized boolean remove(Window window) {
        int index = (int) window.handle() - 1;
        if (index >= all.length || all[index] != window) {
            return false;
        }
        @Nullable
        Window[] copy = all.clone();
        copy[index] = null;
        all = copy;
        return true;
    }

    /** The window of a handle, if it is here. */
    public @Nullable Window find(long handle) {
        @Nullable
        Window[] windows = all;
        return handle >= 1 && handle <= windows.length ? windows[(int) handle - 1] : null;
    }

    /** Whether a handle may still be given to a window. */
    public boolean isYetToCome(long handle) {
        return handle > all.length;
    }

    /** What there is, for messages. */
    public String describe(long handle) {
        int count = all.length;
        return "window " + handle
                + (handle >= 1 && handle <= count ? " was closed" : " is not registered (there are " + count + ")");
    }
}
