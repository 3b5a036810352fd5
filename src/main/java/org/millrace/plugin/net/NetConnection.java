package org.millrace.plugin.net;

/**
 * One direction between two ranks, as NCCL sees it. NCCL's service thread registers memory and closes; its progress
 * thread, if it makes progress at all, posts and tests. The two never call at once.
 */
public interface NetConnection extends AutoCloseable {

    /** What {@link #post} returns if there is no room: NCCL tries again. */
    int NO_REQUEST = -1;
    /** What {@link #test} returns for a request that is not done. */
    int PENDING = -1;

    /**
     * The address of an {@code ncclNetDeviceHandle_t} that lives as long as this connection, or 0 for none. Read once,
     * right after the connection was made.
     */
    long deviceHandle();

    /**
     * Takes memory in that payloads will lie in.
     *
     * @return the region's number, 0 to {@code ConnectionHandle.REGIONS - 1}
     */
    int register(long address, long bytes);

    /** Forgets memory: when this returns nobody touches it any more, whatever was still under way. */
    void deregister(int region);

    /**
     * Begins to send a message, or to receive one.
     *
     * @param address of the message's first byte, within the region
     * @param bytes   its length, or how long it may be; 0 needs no region
     * @return the request's number modulo {@code ConnectionHandle.REQUEST_NUMBERS}, or {@link #NO_REQUEST}
     */
    int post(long address, long bytes, int region);

    /**
     * Makes progress, and looks whether a request is done; if it is, its number is free again.
     *
     * @return bytes sent or received, or {@link #PENDING}
     */
    int test(int request);

    @Override
    void close();
}
