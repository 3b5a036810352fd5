package org.millrace.plugin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings;
import org.millrace.net.FrameReceiver;
import org.millrace.proxy.UnpackReceiveSource;

/**
 * Which requests of NCCL's proxy are Simple slices, and where they arrive if kernels unpack. The proxy registers its
 * buffers in the order of the protocols and posts every slice, empty ones included: each is one that the kernel counts.
 */
final class UnpackRequests {

    private static final int NONE = -1;

    private final UnpackDevice.Connection connection;
    private final int[] firstPages = new int[RequestRing.CAPACITY];
    private UnpackReceiveSource.@Nullable UnpackMemory memory;
    private long slotBytes;
    private long ordinal;
    private long published;

    UnpackRequests(UnpackDevice.Connection connection) {
        this.connection = connection;
    }

    void registered(int region, long bytes) {
        if (region == Protocol.SIMPLE.id()) {
            slotBytes = bytes / ConnectionLayout.SLOTS;
            memory = connection.prepare(slotBytes);
            ordinal = memory.firstOrdinal();
        }
    }

    /** Takes in where a request would arrive without pages. */
    void posted(long sequence, int region, long offset, long bytes) {
        int index = RequestRing.slot(sequence);
        firstPages[index] = NONE;
        if (region != Protocol.SIMPLE.id() || memory == null) {
            return;
        }
        int slot = (int) (offset / slotBytes);
        if (offset % slotBytes != 0 || bytes > memory.pages().room(slot, ConnectionLayout.SLOTS)) {
            throw new IllegalArgumentException("a slice of " + bytes + " bytes at byte " + offset + " of its buffer"
                    + " does not begin with one of its slots of " + slotBytes + " bytes;"
                    + " set NCCL_NET_SHARED_BUFFERS=0, or unset " + Settings.UNPACK.name());
        }
        firstPages[index] = memory.pages().first(slot);
    }

    /** Gives the payload of a request its pages; false if it has none. */
    boolean receive(FrameReceiver receiver, long sequence) {
        int first = firstPages[RequestRing.slot(sequence)];
        if (first == NONE) {
            return false;
        }
        memory.pages().receive(receiver, first);
        return true;
    }

    /**
     * Publishes the lists of requests that have arrived, in order; to be called before NCCL is told that one is done,
     * which is when it moves tail.
     */
    void publish(long arrived, RequestRing requests) {
        for (; published < arrived; published++) {
            int first = firstPages[RequestRing.slot(published)];
            if (first == NONE) {
                continue;
            }
            long bytes = requests.bytes(published);
            if (bytes > 0) {
                memory.pages().publish(memory.lists(), ordinal, first, bytes);
            }
            ordinal++;
        }
    }

    long deviceHandle() {
        return connection.deviceHandle();
    }

    void close() {
        connection.close();
    }
}
