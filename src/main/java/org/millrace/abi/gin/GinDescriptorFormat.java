package org.millrace.abi.gin;

import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclGinProxyGfd_v1_t;
import org.millrace.ffi.device.ncclGinProxyGfd_v2_t;

/**
 * The bit layout of a GIN descriptor. The layout depends on NCCL's release. A descriptor has 8 words (64 bytes), or 16
 * words (128 bytes) from 2.30 on. Bit 0 of each word is the flag {@code f}: it is set if the word is present. Each word
 * needs a flag, because a GPU stores the words in no particular order. A VA signal is a signal that lies in a window.
 *
 * <pre>
 *   word      63                                                          8 7   1 0
 *   0 header  | size                                       (bits 7 to 63) | op  |f|   2.30: version, not op, bits 1..4
 *   1         | source offset (bits 1 to 63), or value bits 0 to 47 at 8, or VA signal's offset
 *   2         | source handle (bits 1 to 63), or value bits 48 to 63 at 8, or VA signal's handle
 *   3         | destination offset                            (bits 1 to 63)    |f|
 *   4         | destination handle                            (bits 1 to 63)    |f|
 *   5         | 2.28: counter 8..23, signal 24..39, signal value 0..15 at 40    |f|
 *             | 2.29, 2.30: counter 1..23, signal 24..47, value at 48           |f|
 *   6         | signal value 16..63 (bits 8 to 55)                      |strong |f|   2.30.5: strong
 *   7         | 2.30: op (bits 8 to 23)                                         |f|
 *   8 to 15   | 2.30: reserved                                                  |f|
 * </pre>
 *
 * <p>
 * The bit {@code strong} requests a signal that becomes visible after all earlier puts of its context to the same peer.
 * No code reads this bit, because every signal has this order.
 *
 * <p>
 * Facts: {@code nccl_device/gin/proxy/gin_proxy_device_host_common.h} of each NCCL release. This class does not access
 * shared memory. It reads the words from an array and writes them to an array.
 */
public enum GinDescriptorFormat {
    /** NCCL 2.28. */
    V28((int) (ncclGinProxyGfd_v1_t.sizeof() / Long.BYTES), GinDescriptorFormat.NO_VERSION,
            device_h.MILLRACE_GIN_V28_COUNTER_SHIFT(), device_h.MILLRACE_GIN_V28_COUNTER_BITS(),
            device_h.MILLRACE_GIN_V28_SIGNAL_SHIFT(), device_h.MILLRACE_GIN_V28_SIGNAL_BITS(),
            device_h.MILLRACE_GIN_V28_VALUE_LOW_SHIFT()),
    /** NCCL 2.29. */
    V29((int) (ncclGinProxyGfd_v1_t.sizeof() / Long.BYTES), GinDescriptorFormat.NO_VERSION,
            device_h.MILLRACE_GIN_COUNTER_SHIFT(), device_h.MILLRACE_GIN_COUNTER_BITS(),
            device_h.MILLRACE_GIN_SIGNAL_SHIFT(), device_h.MILLRACE_GIN_SIGNAL_BITS(),
            device_h.MILLRACE_GIN_VALUE_LOW_SHIFT()),
    /** NCCL 2.30.3 and 2.30.4. */
    V30_3((int) (ncclGinProxyGfd_v2_t.sizeof() / Long.BYTES), device_h.MILLRACE_GIN_GFD_VERSION_V23003(),
            device_h.MILLRACE_GIN_COUNTER_SHIFT(), device_h.MILLRACE_GIN_COUNTER_BITS(),
            device_h.MILLRACE_GIN_SIGNAL_SHIFT(), device_h.MILLRACE_GIN_SIGNAL_BITS(),
            device_h.MILLRACE_GIN_VALUE_LOW_SHIFT()),
    /** NCCL 2.30.5 and later releases of NCCL 2.30. */
    V30((int) (ncclGinProxyGfd_v2_t.sizeof() / Long.BYTES), device_h.NCCL_GIN_PROXY_GFD_VERSION(),
            device_h.MILLRACE_GIN_COUNTER_SHIFT(), device_h.MILLRACE_GIN_COUNTER_BITS(),
            device_h.MILLRACE_GIN_SIGNAL_SHIFT(), device_h.MILLRACE_GIN_SIGNAL_BITS(),
            device_h.MILLRACE_GIN_VALUE_LOW_SHIFT());

    public static final int MAX_WORDS = (int) (ncclGinProxyGfd_v2_t.sizeof() / Long.BYTES);
    /** Value of {@code version} for formats whose header contains the operation instead of a version. */
    private static final int NO_VERSION = 0;

    /** Bit that is set in every word that is present. */
    public static final long FLAG = device_h.MILLRACE_GIN_FLAG();
    /** Largest offset or handle: both have 63 bits. */
    public static final long MAX_ADDRESS = Long.MAX_VALUE;

    private static final int HEADER = device_h.ncclGinProxyGfdHeader();
    private static final int SOURCE_OFFSET = device_h.ncclGinProxyGfdSrcOff();
    private static final int SOURCE_HANDLE = device_h.ncclGinProxyGfdSrcHandle();
    private static final int TARGET_OFFSET = device_h.ncclGinProxyGfdDstOff();
    private static final int TARGET_HANDLE = device_h.ncclGinProxyGfdDstHandle();
    private static final int COMPLETION = device_h.ncclGinProxyGfdCompletion();
    private static final int SIGNAL_VALUE = device_h.ncclGinProxyGfdSignalVal();
    private static final int SIZE_SHIFT = device_h.MILLRACE_GIN_HEADER_SIZE_SHIFT();
    private static final int ADDRESS_SHIFT = device_h.MILLRACE_GIN_ADDRESS_SHIFT();
    private static final int INLINE_SHIFT = device_h.MILLRACE_GIN_INLINE_SHIFT();
    private static final int INLINE_LOW_BITS = device_h.MILLRACE_GIN_INLINE_LOW_BITS();
    private static final int INLINE_HIGH_BITS = device_h.MILLRACE_GIN_INLINE_HIGH_BITS();
    private static final int VALUE_LOW_BITS = device_h.MILLRACE_GIN_VALUE_LOW_BITS();
    private static final int VALUE_HIGH_SHIFT = device_h.MILLRACE_GIN_VALUE_HIGH_SHIFT();
    private static final int VALUE_HIGH_BITS = device_h.MILLRACE_GIN_VALUE_HIGH_BITS();

    private final int words;
    private final int version;
    private final int opWord;
    private final int opShift;
    private final int opBits;
    private final int counterShift;
    private final int counterBits;
    private final int signalShift;
    private final int signalBits;
    private final int valueLowShift;

    GinDescriptorFormat(int words, int version, int counterShift, int counterBits, int signalShift, int signalBits,
            int valueLowShift) {
        this.words = words;
        this.version = version;
        boolean extended = version != NO_VERSION;
        this.opWord = extended ? device_h.ncclGinProxyGfdHeaderExt() : device_h.ncclGinProxyGfdHeader();
        this.opShift = extended ? device_h.MILLRACE_GIN_EXT_OP_SHIFT() : device_h.MILLRACE_GIN_HEADER_OP_SHIFT();
        this.opBits = extended ? device_h.MILLRACE_GIN_EXT_OP_BITS() : device_h.MILLRACE_GIN_HEADER_OP_BITS();
        this.counterShift = counterShift;
        this.counterBits = counterBits;
        this.signalShift = signalShift;
        this.signalBits = signalBits;
        this.valueLowShift = valueLowShift;
    }

    private static long bits(long word, int shift, int bits) {
        return word >>> shift & (1L << bits) - 1;
    }

    private static long field(long value, int shift, int bits) {
        return (value & (1L << bits) - 1) << shift;
    }

    /** {@return the length of a descriptor, in words} */
    public int words() {
        return words;
    }

    /** {@return the length of a descriptor, in bytes} */
    public long bytes() {
        return (long) words * Long.BYTES;
    }

    /** {@return whether this format has gets and flushes; if so, a signal number is relative to its context} */
    public boolean hasGets() {
        return version != NO_VERSION;
    }

    /**
     * {@return the size of the context for descriptors of this format: {@link GinGpuContext#BYTES_V1} or
     * {@link GinGpuContext#BYTES_V2}}
     */
    public long contextBytes() {
        return this == V30 ? GinGpuContext.BYTES_V2 : GinGpuContext.BYTES_V1;
    }

    /**
     * {@return whether a kernel resets a signal by storing the signal's old value in {@code signalOffsets}; with other
     * formats the kernel stores 0 in the signal}
     */
    public boolean resetsByOffset() {
        return this == V30;
    }

    /** {@return the number of different signals that a descriptor can name} */
    public int maxSignals() {
        return 1 << signalBits;
    }

    /** {@return the number of different counters that a descriptor can name} */
    public int maxCounters() {
        return 1 << counterBits;
    }

    /** {@return the operation that a descriptor requests, as bits of {@link GinOp}} */
    public int op(long[] descriptor) {
        return (int) bits(descriptor[opWord], opShift, opBits);
    }

    /**
     * {@return whether the version in a descriptor is the version of this format; always true for formats without a
     * version}
     */
    public boolean isVersionKnown(long[] descriptor) {
        return version == NO_VERSION || bits(descriptor[HEADER], device_h.MILLRACE_GIN_HEADER_VERSION_SHIFT(),
                device_h.MILLRACE_GIN_HEADER_VERSION_BITS()) == version;
    }

    /** {@return the number of bytes to put or to get} */
    public long size(long[] descriptor) {
        return descriptor[HEADER] >>> SIZE_SHIFT;
    }

    /** {@return the offset of the source in its window, or the offset of a VA signal} */
    public long sourceOffset(long[] descriptor) {
        return descriptor[SOURCE_OFFSET] >>> ADDRESS_SHIFT;
    }

    /** {@return the handle of the source's window, or of the window that contains a VA signal} */
    public long sourceHandle(long[] descriptor) {
        return descriptor[SOURCE_HANDLE] >>> ADDRESS_SHIFT;
    }

    /**
     * Returns the value of an inline put. If the put has less than 8 bytes, the remaining bytes of the value are
     * undefined, because the kernel does not set them.
     */
    public long inlineValue(long[] descriptor) {
        return bits(descriptor[SOURCE_OFFSET], INLINE_SHIFT, INLINE_LOW_BITS)
                | bits(descriptor[SOURCE_HANDLE], INLINE_SHIFT, INLINE_HIGH_BITS) << INLINE_LOW_BITS;
    }

    /** {@return the offset of the destination in its window} */
    public long targetOffset(long[] descriptor) {
        return descriptor[TARGET_OFFSET] >>> ADDRESS_SHIFT;
    }

    /**
     * {@return the destination's window, as a handle of this rank; the destination itself may lie on another rank}
     */
    public long targetHandle(long[] descriptor) {
        return descriptor[TARGET_HANDLE] >>> ADDRESS_SHIFT;
    }

    /** {@return the number of the counter to increment; only meaningful with {@link GinOp#COUNTER}} */
    public int counter(long[] descriptor) {
        return (int) bits(descriptor[COMPLETION], counterShift, counterBits);
    }

    /**
     * {@return the number of the signal to change; only meaningful with {@link GinOp#SIGNAL_INC} or
     * {@link GinOp#SIGNAL_ADD}}
     */
    public int signal(long[] descriptor) {
        return (int) bits(descriptor[COMPLETION], signalShift, signalBits);
    }

    /** {@return the value to add to the signal} */
    public long signalValue(long[] descriptor) {
        return bits(descriptor[COMPLETION], valueLowShift, VALUE_LOW_BITS)
                | bits(descriptor[SIGNAL_VALUE], VALUE_HIGH_SHIFT, VALUE_HIGH_BITS) << VALUE_LOW_BITS;
    }

    /**
     * Begins a descriptor: sets the operation, the size, and the flag in every word. The other fields become 0.
     *
     * @param descriptor array of at least {@link #words()} words
     */
    public void begin(long[] descriptor, int op, long size) {
        for (int word = 0; word < words; word++) {
            descriptor[word] = FLAG;
        }
        descriptor[HEADER] |= size << SIZE_SHIFT;
        if (version != NO_VERSION) {
            descriptor[HEADER] |= field(version, device_h.MILLRACE_GIN_HEADER_VERSION_SHIFT(),
                    device_h.MILLRACE_GIN_HEADER_VERSION_BITS());
        }
        descriptor[opWord] |= field(op, opShift, opBits);
    }

    /** Sets the window and the offset of the source, or of a VA signal. */
    public void source(long[] descriptor, long handle, long offset) {
        descriptor[SOURCE_OFFSET] = offset << ADDRESS_SHIFT | FLAG;
        descriptor[SOURCE_HANDLE] = handle << ADDRESS_SHIFT | FLAG;
    }

    /**
     * Sets the value of an inline put.
     *
     * @param value bytes to put, the first byte in the lowest bits
     */
    public void inline(long[] descriptor, long value) {
        descriptor[SOURCE_OFFSET] = field(value, INLINE_SHIFT, INLINE_LOW_BITS) | FLAG;
        descriptor[SOURCE_HANDLE] = field(value >>> INLINE_LOW_BITS, INLINE_SHIFT, INLINE_HIGH_BITS) | FLAG;
    }

    /** Sets the window and the offset of the destination. */
    public void target(long[] descriptor, long handle, long offset) {
        descriptor[TARGET_OFFSET] = offset << ADDRESS_SHIFT | FLAG;
        descriptor[TARGET_HANDLE] = handle << ADDRESS_SHIFT | FLAG;
    }

    /**
     * Sets the counter and the signal of a put. The counter is incremented when the source has been read. The signal is
     * changed when the bytes have arrived at the peer.
     */
    public void completion(long[] descriptor, int counter, int signal, long value) {
        descriptor[COMPLETION] = field(counter, counterShift, counterBits) | field(signal, signalShift, signalBits)
                | field(value, valueLowShift, VALUE_LOW_BITS) | FLAG;
        descriptor[SIGNAL_VALUE] = field(value >>> VALUE_LOW_BITS, VALUE_HIGH_SHIFT, VALUE_HIGH_BITS) | FLAG;
    }
}
