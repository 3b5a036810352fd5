package org.millrace.plugin.net;

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
