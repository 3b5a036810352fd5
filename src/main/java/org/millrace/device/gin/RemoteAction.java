package org.millrace.device.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.Window;

/**
 * The action at the peer after a put has arrived: none, or an increase of a signal.
 *
 * @param op     0 for no action, or bits of {@link GinOp}
 * @param signal number of the signal in the context
 * @param window window that contains the signal; null if the signal belongs to the context
 * @param offset offset of the signal in that window, a multiple of 8
 */
public record RemoteAction(int op, int signal, long value, @Nullable Window window, long offset) {

    public static final RemoteAction NONE = new RemoteAction(0, 0, 0, null, 0);

    public static RemoteAction increment(int signal) {
        return new RemoteAction(GinOp.SIGNAL_INC, signal, 1, null, 0);
    }

    public static RemoteAction add(int signal, long value) {
        return new RemoteAction(GinOp.SIGNAL_ADD, signal, value, null, 0);
    }

    /**
     * Returns an action that increases a signal of 8 bytes in a window. NCCL has such signals from 2.29 on.
     */
    public static RemoteAction add(Window window, long offset, long value) {
        return new RemoteAction(GinOp.SIGNAL_ADD | GinOp.VA_SIGNAL, 0, value, window, offset);
    }

    boolean isInWindow() {
        return window != null;
    }
}
