package org.millrace.abi.gin;

import org.millrace.ffi.device.device_h;

/** The bits of a GIN descriptor's operation. A descriptor can combine several bits. */
public final class GinOp {
    /** Put: writes bytes of a window, or a value, to a window of the peer. */
    public static final int PUT = device_h.ncclGinProxyOpPut();
    /** Inline put: the descriptor itself contains the bytes. Used only in combination with a put. */
    public static final int INLINE = device_h.ncclGinProxyOpWithInline();
    /** Increments a counter of this rank when the source has been read. */
    public static final int COUNTER = device_h.ncclGinProxyOpWithCounter();
    /**
     * Increments a signal of the peer when all bytes have arrived. A descriptor with this bit has the signal value 1.
     */
    public static final int SIGNAL_INC = device_h.ncclGinProxyOpWithSignalInc();
    /** Adds the signal value to a signal of the peer when all bytes have arrived. */
    public static final int SIGNAL_ADD = device_h.ncclGinProxyOpWithSignalAdd();
    /**
     * VA signal: the signal consists of 8 bytes of a window. Never combined with a put. NCCL has this bit from 2.29 on.
     */
    public static final int VA_SIGNAL = device_h.ncclGinProxyOpVASignal();
    /** Get: reads bytes from a window of the peer into a window of this rank. NCCL has this bit from 2.30 on. */
    public static final int GET = device_h.ncclGinProxyOpGet();
    /** Flush: makes the data of completed gets visible. NCCL has this bit from 2.30 on. */
    public static final int FLUSH = device_h.ncclGinProxyOpFlush();

    private GinOp() {}

    /** {@return whether an operation contains this bit} */
    public static boolean has(int op, int bit) {
        return (op & bit) != 0;
    }

    /** {@return whether an operation changes a signal} */
    public static boolean signals(int op) {
        return (op & (SIGNAL_INC | SIGNAL_ADD)) != 0;
    }

    /** {@return text for messages with the names of the bits that an operation contains} */
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
