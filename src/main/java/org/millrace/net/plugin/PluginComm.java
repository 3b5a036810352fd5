package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.connection.InFlight;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * One of the plugin's communicators, its memory, and the requests that are under way on it, oldest first. Only the
 * oldest is tested, as NCCL's own proxy does: plugins move data when they are tested.
 */
abstract class PluginComm {

    /**
     * Requests under way at the most: half of what NCCL may have on a communicator, the other half being for flushes.
     */
    static final int MAX_REQUESTS = 16;

    private static final int DONE_OFFSET = 8;
    private static final int SIZES_OFFSET = 16;
    /** For the results of calls: a request, whether it is done, and the sizes of its messages. */
    private static final int RESULT_BYTES = 64;
    private static final int CACHE_LINE = 64;

    final PluginConnection connection;
    final NetTable table;
    final CallWatch watch;
    final long communicator;
    final CommMemory memory;
    private final NetFunction closing;
    private final MemorySegment results;
    private final long[] requests = new long[MAX_REQUESTS];
    /** The requests. */
    final InFlight window = new InFlight(MAX_REQUESTS);
    /** A test has failed: nothing more will come of what is under way. */
    private boolean failed;

    PluginComm(PluginConnection connection, long communicator, NetFunction closing, Arena arena) {
        this.connection = connection;
        this.communicator = communicator;
        this.closing = closing;
        Session session = connection.session();
        table = session.table();
        watch = connection.watch();
        results = unscoped(arena.allocate(RESULT_BYTES, CACHE_LINE));
        memory = new CommMemory(session, communicator, connection.slowWatch(),
                unscoped(arena.allocate(CACHE_LINE, CACHE_LINE)));
    }

    /** Memory of a connection, which is freed after its last use, and so is seen without its arena. */
    @SuppressWarnings("restricted") // within the memory's bounds
    static MemorySegment unscoped(MemorySegment memory) {
        return MemorySegment.ofAddress(memory.address()).reinterpret(memory.byteSize());
    }

    /** Where a call leaves its request, which is none yet. */
    final long newRequest() {
        results.set(ValueLayout.JAVA_LONG, 0, 0);
        return results.address();
    }

    /** The request that a call has left; 0 if it left none, or failed: the connection is broken then. */
    final long request(NetFunction function, int result) {
        if (result != NetTable.SUCCESS) {
            connection.broken(function, result);
            return 0;
        }
        return results.get(ValueLayout.JAVA_LONG, 0);
    }

    /** Notes what a call began; false if it began nothing, so that it is to be made again later. */
    final boolean began(NetFunction function, int result) {
        long request = request(function, result);
        if (request == 0) {
            return false;
        }
        requests[window.begin()] = request;
        return true;
    }

    /** Whether the oldest request is done; it is no longer one then. */
    final boolean testOldest() {
        if (window.isEmpty() || !test(requests[window.oldest()])) {
            return false;
        }
        window.finishOldest();
        return true;
    }

    /** Whether a request is done. */
    final boolean test(long request) {
        if (failed) {
            return false;
        }
        results.set(ValueLayout.JAVA_INT, DONE_OFFSET, 0);
        int result = table.test(watch, request, results.address() + DONE_OFFSET, results.address() + SIZES_OFFSET);
        if (result != NetTable.SUCCESS) {
            failed = true;
            connection.broken(NetFunction.TEST, result);
            return false;
        }
        return results.get(ValueLayout.JAVA_INT, DONE_OFFSET) != 0;
    }

    /** Length of a message of the request that was tested last. */
    final int size(int message) {
        return results.get(ValueLayout.JAVA_INT, SIZES_OFFSET + message * Integer.BYTES);
    }

    /** Makes sure that the plugin knows a region; false if it refuses, and the connection is broken. */
    final boolean knows(PluginRegion region) {
        if (memory.has(region)) {
            return true;
        }
        int result = memory.register(region);
        if (result != NetTable.SUCCESS) {
            connection.broken(NetFunction.REG_MR, result);
            return false;
        }
        return true;
    }

    /** Gives back memory and communicator. No thread uses them any more. */
    final void close() {
        memory.close();
        table.close(connection.slowWatch(), closing, communicator);
    }
}
