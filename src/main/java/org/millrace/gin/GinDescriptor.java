package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/** A decoded descriptor that was taken from a queue. The object is reused. */
final class GinDescriptor {

    private static final int KINDS = GinOp.PUT | GinOp.GET | GinOp.FLUSH | GinOp.VA_SIGNAL;

    private final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
    private boolean versionKnown;
    int op;
    public long size;
    /**
     * Handle of a window, and offset in this window. They locate a put's source, the bytes that a get reads at the
     * peer, or a VA signal. Both are 0 for an inline value.
     */
    public long sourceHandle;
    public long sourceOffset;
    public long inlineValue;
    public long targetHandle;
    public long targetOffset;
    int counter;
    public int signal;
    public long signalValue;

    long[] words() {
        return words;
    }

    void decode(GinDescriptorFormat format) {
        op = format.op(words);
        // A VA signal and a flush transfer no bytes.
        size = has(GinOp.VA_SIGNAL) || has(GinOp.FLUSH) ? 0 : format.size(words);
        versionKnown = format.isVersionKnown(words);
        if (has(GinOp.INLINE)) {
            inlineValue = format.inlineValue(words);
            sourceHandle = 0;
            sourceOffset = 0;
        } else {
            sourceHandle = format.sourceHandle(words);
            sourceOffset = format.sourceOffset(words);
        }
        targetHandle = format.targetHandle(words);
        targetOffset = format.targetOffset(words);
        if (has(GinOp.COUNTER)) {
            counter = format.counter(words);
        }
        if (signals()) {
            signal = format.signal(words);
            signalValue = format.signalValue(words);
        }
    }

    public boolean has(int bit) {
        return GinOp.has(op, bit);
    }

    public boolean signals() {
        return GinOp.signals(op);
    }

    /** Returns the error in the descriptor, or null. This method does not detect errors that depend on windows. */
    public @Nullable String problem(GinContext context) {
        if (!versionKnown) {
            return "its format's version is not the one that NCCL asked for: "
                    + "build the program's kernels with the headers of the NCCL that it loads";
        }
        if (Integer.bitCount(op & KINDS) != 1) {
            return "it asks for " + GinOp.describe(op) + ": one of put, get, flush and VA signal is needed";
        }
        if (has(GinOp.VA_SIGNAL) && (!signals() || (sourceOffset & Long.BYTES - 1) != 0)) {
            return "a signal in a window has a value to add and lies at a multiple of 8";
        }
        if (has(GinOp.INLINE) && (size < 1 || size > Long.BYTES)) {
            return "a value has 1 to 8 bytes";
        }
        if (has(GinOp.COUNTER) && counter >= context.counters().count()) {
            return "it names counter " + counter + " of " + context.counters().count();
        }
        if (signals() && !has(GinOp.VA_SIGNAL) && signal >= context.signals().count()) {
            return "it names signal " + signal + " of " + context.signals().count();
        }
        return null;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(GinOp.describe(op)).append(" of ").append(size).append(" bytes");
        if (targetHandle != 0) {
            text.append(" to window ").append(targetHandle).append(" at ").append(targetOffset);
        }
        if (sourceHandle != 0) {
            text.append(has(GinOp.VA_SIGNAL) ? ", signal in window " : " from window ")
                    .append(sourceHandle)
                    .append(" at ")
                    .append(sourceOffset);
        }
        if (signals() && !has(GinOp.VA_SIGNAL)) {
            text.append(", signal ").append(signal);
        }
        return text.toString();
    }
}
