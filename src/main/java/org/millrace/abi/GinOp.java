package org.millrace.abi;

import org.millrace.ffi.device.device_h;

/** The operation that a GIN descriptor requests, as a combination of bits. */
public final class GinOp {
    /** Writes bytes of a window, or a value, to a window of the peer. */
    public static final int PUT = device_h.ncclGinProxyOpPut();
    /** With a put: the descriptor contains the bytes. */
    public static final int INLINE = device_h.ncclGinProxyOpWithInline();
    /** Increments a counter when the source has been read. */
    public static final int COUNTER = device_h.ncclGinProxyOpWithCounter();
    /** Increments a signal of the peer when all bytes have arrived; the value in the descriptor is also 1. */
    public static final int SIGNAL_INC = device_h.ncclGinProxyOpWithSignalInc();
    /** Adds the value to a signal of the peer when all bytes have arrived. */
    public static final int SIGNAL_ADD = device_h.ncclGinProxyOpWithSignalAdd();
    /** The signal is 8 bytes of a window; never combined with a put. From 2.29. */
    public static final int VA_SIGNAL = device_h.ncclGinProxyOpVASignal();
    /** Reads bytes from a window of the peer into a window of this rank. From 2.30. */
    public static final int GET = device_h.ncclGinProxyOpGet();
    /** Makes completed gets visible. From 2.30. */
    public static final int FLUSH = device_h.ncclGinProxyOpFlush();

    private GinOp() {}

    /** {@return whether a bit is set} */
    public static boolean has(int op, int bit) {
        return (op & bit) != 0;
    }

    /** {@return whether the operation changes a signal} */
    public static boolean signals(int op) {
        return (op & (SIGNAL_INC | SIGNAL_ADD)) != 0;
    }

    /** {@return the names of the bits, for messages} */
    public static String describe(int op) {
        StringBuilder text = new StringBuilder();
        append(text, op, PUT, "put");
        append(text, op, INLINE, "inline");
        append(text, op, GET, "get");
        append(text, op, FLUSH, "flush");
        append(text, op, VA_SIGNAL, "VA");
        append(text, op, SIGNAL_INC, "signal increment");
        append(text, op, SIGNAL_ADD, "signal add");
        append(text, op, COUNTER, "counter");
        int unknown = op & ~(PUT | INLINE | GET | FLUSH | VA_SIGNAL | SIGNAL_INC | SIGNAL_ADD | COUNTER);
        if (unknown != 0 || op == 0) {
            text.append(text.isEmpty() ? "" : "+").append("0x").append(Integer.toHexString(unknown));
        }
        return text.toString();
    }

    private static void append(StringBuilder text, int op, int bit, String name) {
        if (has(op, bit)) {
            text.append(text.isEmpty() ? "" : "+").append(name);
        }
    }
}
