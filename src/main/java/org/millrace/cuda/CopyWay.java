package org.millrace.cuda;

/** What makes copies, one after another, while the caller does something else. Numbers of copies grow by one. */
interface CopyWay extends AutoCloseable {

    /** Whether another may be begun; false if as many are under way as can be asked after. */
    boolean hasRoom();

    /** Begins a copy of 1 byte or more; returns its number. */
    long copy(long to, long from, long bytes);

    /** Begins a store of 8 bytes at a multiple of 8; returns its number. */
    long storeLong(long to, long value);

    /** Begins a store of 4 bytes at a multiple of 4; returns its number. */
    long storeInt(long to, int value);

    /** Whether a copy was made, and all before it: whoever is told now sees the bytes. */
    boolean isDone(long number);

    /** Waits until none is under way; unlike the other calls, from any thread. */
    void settle();

    /** Waits for what was begun, and ends. */
    @Override
    void close();
}
