package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.plugin.NetTable.NetFunction;

/** A communicator for receives. One receive has several buffers if the plugin supports it. */
final class RecvComm extends PluginComm {

    /**
     * Length in bytes of one array of a receive's arguments. Four arrays contain the addresses, sizes, tags and memory
     * handles of the buffers. The fifth array contains the parent of each buffer's profiler event. All parents are
     * null.
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

    /** Returns the number of buffers that were added to the receive that is posted next. */
    int staged() {
        return staged;
    }

    /** Adds a buffer to the receive that is posted next. Returns false if the plugin refuses the buffer's memory. */
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
     * Posts a receive with the added buffers. Returns false if the plugin accepts no receive now. The buffers are then
     * part of the next receive.
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

    /** Sets a buffer of the next flush. The arrays must not contain buffers of a receive. */
    void stageFlush(int buffer, PluginRegion region, long address, long bytes) {
        setSize(buffer, bytes, false);
        setBuffer(buffer, address, memory.handle(region));
    }

    /**
     * Begins to flush the first buffers in the arrays, so that their device sees the data. Returns the request; 0 if
     * the flush is complete already, or has failed.
     */
    long flush(int buffers) {
        long at = arguments.address();
        return request(NetFunction.IFLUSH,
                table.iflush(watch, communicator, buffers, at, at + SIZES, at + HANDLES, newRequest()));
    }
}
