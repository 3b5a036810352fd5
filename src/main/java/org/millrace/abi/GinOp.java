package org.millrace.abi;

import org.millrace.ffi.device.device_h;

/** What a GIN descriptor asks for: bits that are or'ed. */
public final class GinOp {
    /** Bytes of a window, or a value, go to a window of the peer. */
    public static final int PUT = device_h.ncclGinProxyOpPut();
    /** With a put: the bytes are in the descriptor. */
    public static final int INLINE = device_h.ncclGinProxyOpWithInline();
    /** A counter grows by one when the source has been read. */
    public static final int COUNTER = device_h.ncclGinProxyOpWithCounter();
    /** A signal of the peer grows by one when all has arrived; the value says one too. */
    public static final int SIGNAL_INC = device_h.ncclGinProxyOpWithSignalInc();
    /** A signal of the peer grows by the value when all has arrived. */
    public static final int SIGNAL_ADD = device_h.ncclGinProxyOpWithSignalAdd();
    /** The signal is 8 bytes of a window; never with a put. From 2.29. */
    public static final int VA_SIGNAL = device_h.ncclGinProxyOpVASignal();
    /** Bytes of a window of the peer come here. From 2.30. */
    public static final int GET = device_h.ncclGinProxyOpGet();
    /** Gets that are complete become visible. From 2.30. */
    public static final int FLUSH = device_h.ncclGinProxyOpFlush();

    private GinOp() {}

    /** {@return whether a bit is set} */
    public static boolean has(int op, int bit) {
        return (op & bit) != 0;
    }

    /** {@return whether a signal is changed} */
    public static boolean signals(int op) {
        return (op & (SIGNAL_INC | SIGNAL_ADD)) != 0;
    }

    /** {@return the bits by name, for messages} */
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
