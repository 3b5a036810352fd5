package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.net.connection.InFlight;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * One of the plugin's communicators, with its registered memory and its requests in flight, oldest first. Only the
 * oldest request is tested, as in NCCL's own proxy. Plugins move data during these tests.
 */
abstract class PluginComm {

    /**
     * Maximum number of requests in flight: half of NCCL's limit for a communicator. Flushes may use the other half.
     */
    static final int MAX_REQUESTS = 16;

    private static final int DONE_OFFSET = 8;
    private static final int SIZES_OFFSET = 16;
    /** Length in bytes of {@link #results}: a request's address, its state, and the lengths of its messages. */
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
    final InFlight window = new InFlight(MAX_REQUESTS);
    /** Whether the plugin has failed to test a request. If so, the requests in flight never complete. */
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

    /**
     * Returns a segment that covers a connection's memory and does not depend on the arena of this memory. The memory
     * is freed after the last use of the segment.
     */
    @SuppressWarnings("restricted") // the new segment has the bounds of the memory
    static MemorySegment unscoped(MemorySegment memory) {
        return MemorySegment.ofAddress(memory.address()).reinterpret(memory.byteSize());
    }

    /**
     * Clears the first word of {@link #results}, in which the plugin's functions store a request. Returns the address
     * of this word, as an argument for the next call of such a function.
     */
    final long newRequest() {
        results.set(ValueLayout.JAVA_LONG, 0, 0);
        return results.address();
    }

    /**
     * Returns the request that a call has stored. Returns 0 if the call has stored no request, or has failed. A failed
     * call breaks the connection.
     */
    final long request(NetFunction function, int result) {
        if (result != NetTable.SUCCESS) {
            connection.broken(function, result);
            return 0;
        }
        return results.get(ValueLayout.JAVA_LONG, 0);
    }

    /** Records the request that a call has begun. Returns false if the call must be repeated later, or has failed. */
    final boolean began(NetFunction function, int result) {
        long request = request(function, result);
        if (request == 0) {
            return false;
        }
        requests[window.begin()] = request;
        return true;
    }

    /** Tests the oldest request, and removes a completed request. Returns whether the request was completed. */
    final boolean testOldest() {
        if (window.isEmpty() || !test(requests[window.oldest()])) {
            return false;
        }
        window.finishOldest();
        return true;
    }

    /** Tests a request. Returns whether the request is completed. */
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

    /** Returns the length of one message of the most recently tested request. */
    final int size(int message) {
        return results.get(ValueLayout.JAVA_INT, SIZES_OFFSET + message * Integer.BYTES);
    }

    /**
     * Registers a region with the communicator, unless the region is registered already. Returns false if the plugin
     * refuses the region; the connection is then broken.
     */
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

    /** Deregisters the memory, and closes the communicator. No thread may use them afterwards. */
    final void close() {
        memory.close();
        table.close(connection.slowWatch(), closing, communicator);
    }
}
