package org.millrace.plugin.net;

import org.millrace.plugin.shim.NativeMemory;

/** The buffers of one receive: where each message goes, how long it may be, and which tag it has. */
public final class ReceiveBuffers {

    /** The most that one receive may have: what NCCL's own networks allow. */
    public static final int MOST = 8;

    private final long[] addresses = new long[MOST];
    private final long[] bytes = new long[MOST];
    private final int[] regions = new int[MOST];
    private final int[] tags = new int[MOST];
    private int count;

    public void clear() {
        count = 0;
    }

    public void add(long address, long length, int region, int tag) {
        addresses[count] = address;
        bytes[count] = length;
        regions[count] = region;
        tags[count] = tag;
        count++;
    }

    /** Reads C's arrays, of so many elements each. */
    void read(long connection, int elements, long starts, long lengths, long names, long memories) {
        clear();
        for (int i = 0; i < elements; i++) {
            long length = NativeMemory.getLong(lengths + (long) i * Long.BYTES);
            long memory = NativeMemory.getLong(memories + (long) i * Long.BYTES);
            add(NativeMemory.getLong(starts + (long) i * Long.BYTES), length,
                    ConnectionHandle.regionOf(connection, length, memory),
                    NativeMemory.getInt(names + (long) i * Integer.BYTES));
        }
    }

    public int count() {
        return count;
    }

    public long address(int index) {
        return addresses[index];
    }

    public long bytes(int index) {
        return bytes[index];
    }

    public int region(int index) {
        return regions[index];
    }

    public int tag(int index) {
        return tags[index];
    }
}
