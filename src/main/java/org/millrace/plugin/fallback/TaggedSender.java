package org.millrace.plugin.fallback;

import java.util.Arrays;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.fallback.FallbackConnection.RegionTable;
import org.millrace.plugin.fallback.FallbackConnection.Sender;
import org.millrace.plugin.path.DataPath;

/**
 * The sending end of a connection with tagged messages. The ranks of a host share the connection, and each rank has a
 * tag. Messages of one tag keep their order, and messages of different tags can overtake each other. Each tag therefore
 * has its own stream, which is connected for its first message. A receiving rank that posts no buffers for its tag does
 * not delay messages of other tags.
 */
final class TaggedSender implements DataPath.Connection {

    private final RegionTable regions;
    private final IntFunction<Pending<FrameSender>> more;
    private final int[] tags;
    private final @Nullable Sender[] streams;
    private final @Nullable Pending<FrameSender>[] pending;
    private final StreamRequests requests = new StreamRequests();
    private int used;

    /**
     * @param most maximum number of streams
     * @param more connects a further stream
     */
    @SuppressWarnings({"unchecked", "rawtypes"})
    TaggedSender(FrameSender first, Network network, int most, IntFunction<Pending<FrameSender>> more) {
        this.more = more;
        regions = new RegionTable(network);
        tags = new int[most];
        streams = new Sender[most];
        pending = new Pending[most];
        streams[0] = new Sender(first, regions);
    }

    @Override
    public int register(long address, long bytes, boolean onDevice, long handle) {
        return regions.add(address, bytes);
    }

    @Override
    public void deregister(int region) {
        if (!requests.isIdle()) {
            for (Sender stream : streams) {
                if (stream != null) {
                    stream.abort();
                }
            }
        }
        regions.remove(region);
    }

    @Override
    public int post(long address, long bytes, int region, int tag) {
        int index = index(tag);
        Sender stream = stream(index);
        if (stream == null || !requests.hasRoom()) {
            return NO_REQUEST;
        }
        int number = stream.post(address, bytes, region, tag);
        return number == NO_REQUEST ? NO_REQUEST : requests.add(index, number);
    }

    private int index(int tag) {
        for (int i = 0; i < used; i++) {
            if (tags[i] == tag) {
                return i;
            }
        }
        if (used == tags.length) {
            throw new IllegalStateException(this + ": messages of more than " + used + " tags, that is ranks; set"
                    + " NCCL_NET_SHARED_COMMS=0, so that each has a connection");
        }
        tags[used] = tag;
        return used++;
    }

    /** Returns the stream of a tag, or null while it is being connected. */
    private @Nullable Sender stream(int index) {
        if (streams[index] == null) {
            pending[index] = pending[index] == null ? more.apply(index) : pending[index];
            FrameSender made = pending[index].poll();
            streams[index] = made == null ? null : new Sender(made, regions);
        }
        return streams[index];
    }

    @Override
    public boolean test(int request, long sizes) {
        boolean done = streams[requests.stream(request)].test(requests.number(request), sizes);
        if (done) {
            requests.remove(request);
        }
        return done;
    }

    @Override
    public void close() {
        for (int i = 0; i < streams.length; i++) {
            if (streams[i] != null) {
                streams[i].close();
            } else if (pending[i] != null) {
                pending[i].close();
            }
        }
        regions.close();
    }

    @Override
    public String toString() {
        return String.valueOf(streams[0]);
    }

    /**
     * Requests of all streams, with numbers that are unique in the connection. Each stream numbers its own requests
     * independently.
     */
    private static final class StreamRequests {

        /**
         * Maximum number of requests of all streams together. NCCL has up to RequestRing.CAPACITY requests in flight on
         * one stream.
         */
        private static final int MOST = RequestRing.CAPACITY * 8;
        private static final int FREE = -1;

        private final int[] streams = new int[MOST];
        private final int[] numbers = new int[MOST];
        private final int[] free = new int[MOST];
        private int freeCount = MOST;

        StreamRequests() {
            Arrays.fill(streams, FREE);
            Arrays.setAll(free, i -> MOST - 1 - i);
        }

        boolean hasRoom() {
            return freeCount > 0;
        }

        boolean isIdle() {
            return freeCount == MOST;
        }

        int add(int stream, int number) {
            int request = free[--freeCount];
            streams[request] = stream;
            numbers[request] = number;
            return request;
        }

        int stream(int request) {
            if (request >= MOST || streams[request] == FREE) {
                throw new IllegalArgumentException(
                        "request " + request + " was never begun, or was reported to NCCL as done before");
            }
            return streams[request];
        }

        int number(int request) {
            return numbers[request];
        }

        void remove(int request) {
            streams[request] = FREE;
            free[freeCount++] = request;
        }
    }
}
