package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.plugin.NetTable.NetFunction;

/** A communicator that receives, by one request into several buffers where the plugin supports it. */
final class RecvComm extends PluginComm {

    /**
     * Length of one array of a receive. There are arrays of buffers, sizes, tags, memory handles, and parents of
     * profiler events, which are all null.
     */
    private static final int ARRAY_BYTES = PluginDevice.MAX_RECVS * Long.BYTES;
    private static final int ARRAYS = 5;
    private static final int SIZES = ARRAY_BYTES;
    private static final int TAGS = 2 * ARRAY_BYTES;
    private static final int HANDLES = 3 * ARRAY_BYTES;
    private static final int PARENTS = 4 * ARRAY_BYTES;

    private final MemorySegment arguments;
    private final boolean longSizes;
    private int staged;

    RecvComm(PluginConnection connection, long communicator, Arena arena) {
        super(connection, communicator, NetFunction.CLOSE_RECV, arena);
        arguments = unscoped(arena.allocate((long) ARRAYS * ARRAY_BYTES, ARRAY_BYTES));
        longSizes = table.hasLongSizes();
    }

    /** Returns the number of buffers that wait to be posted. */
    int staged() {
        return staged;
    }

    /** Adds a buffer to the receive that is posted next. Returns false if its memory cannot be registered. */
    boolean stage(PluginRegion region, long address, long bytes, int tag) {
        if (connection.isBroken() || !knows(region)) {
            return false;
        }
        setSize(staged, bytes, longSizes);
        setBuffer(staged, address, memory.handle(region));
        arguments.set(ValueLayout.JAVA_INT, TAGS + staged * Integer.BYTES, tag);
        staged++;
        return true;
    }

    private void setSize(int buffer, long bytes, boolean asLong) {
        if (asLong) {
            arguments.set(ValueLayout.JAVA_LONG, SIZES + buffer * Long.BYTES, bytes);
        } else {
            arguments.set(ValueLayout.JAVA_INT, SIZES + buffer * Integer.BYTES, (int) bytes);
        }
    }

    private void setBuffer(int buffer, long address, long handle) {
        arguments.set(ValueLayout.JAVA_LONG, buffer * Long.BYTES, address);
        arguments.set(ValueLayout.JAVA_LONG, HANDLES + buffer * Long.BYTES, handle);
    }

    /**
     * Posts a receive of the staged buffers. Returns false if the plugin accepts none now; the buffers then stay
     * staged.
     */
    boolean post() {
        if (connection.isBroken()) {
            return false;
        }
        long at = arguments.address();
        if (!began(NetFunction.IRECV, table.irecv(watch, communicator, staged, at, at + SIZES, at + TAGS, at + HANDLES,
                at + PARENTS, newRequest()))) {
            return false;
        }
        staged = 0;
        return true;
    }

    /** Adds a buffer to a flush. No buffer of a receive may be staged. */
    void stageFlush(int buffer, PluginRegion region, long address, long bytes) {
        setSize(buffer, bytes, false);
        setBuffer(buffer, address, memory.handle(region));
    }

    /**
     * Begins to flush the first staged buffers to their device. Returns the request; 0 if the flush is done, or has
     * failed.
     */
    long flush(int buffers) {
        long at = arguments.address();
        return request(NetFunction.IFLUSH,
                table.iflush(watch, communicator, buffers, at, at + SIZES, at + HANDLES, newRequest()));
    }
}
