package org.millrace.plugin.fallback;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.fallback.FallbackConnection.Receiver;
import org.millrace.plugin.fallback.FallbackConnection.RegionTable;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.path.ConnectionHandle;
import org.millrace.plugin.path.DataPath;

/**
 * The receiving end of a connection with tagged messages. A request has several buffers, each for the next message of
 * its tag. The first message on a stream determines the stream's tag, see {@link TaggedSender}.
 */
final class TaggedReceiver implements DataPath.Connection {

    private static final int REQUESTS = RequestRing.CAPACITY;
    private static final int NOT_POSTED = -1;
    /** Maximum number of buffers of a receive. NCCL's own InfiniBand network has the same maximum. */
    private static final int MAX_RECVS = 8;

    private final RegionTable regions;
    private final GroupedRequest[] requests = new GroupedRequest[REQUESTS];
    private final List<Pending<FrameReceiver>> pending;
    /** Connected streams on which nothing has arrived yet. */
    private final List<FrameReceiver> silent = new ArrayList<>();
    private final List<TagQueue> queues = new ArrayList<>();
    private final FrameReceiver first;
    private final int maxRecvs;

    /** Buffers that were posted as one request. */
    private static final class GroupedRequest {
        private final TagQueue[] queues = new TagQueue[MAX_RECVS];
        private final long[] addresses = new long[MAX_RECVS];
        private final long[] capacities = new long[MAX_RECVS];
        private final int[] regions = new int[MAX_RECVS];
        /**
         * For each buffer, the number of the request that receives into the buffer; {@link #NOT_POSTED} while the
         * buffer waits for a request. The request belongs to the stream with the buffer's tag.
         */
        private final int[] numbers = new int[MAX_RECVS];
        private final int[] sizes = new int[MAX_RECVS];
        private int count;
    }

    /**
     * Waiting buffers of a tag, oldest first. If the tag's stream is known, the buffers wait until the stream has room
     * for a request. Otherwise they wait for the tag's first message, which shows the stream.
     */
    private static final class TagQueue {
        private static final int PLACES = REQUESTS * MAX_RECVS;

        private final int tag;
        private final int[] waiting = new int[PLACES];
        private @Nullable Receiver stream;
        private long added;
        private long posted;

        TagQueue(int tag) {
            this.tag = tag;
        }

        void add(int request, int buffer) {
            waiting[(int) (added++ % PLACES)] = request * MAX_RECVS + buffer;
        }

        void advance(GroupedRequest[] requests) {
            while (stream != null && posted < added) {
                int next = waiting[(int) (posted % PLACES)];
                GroupedRequest request = requests[next / MAX_RECVS];
                int buffer = next % MAX_RECVS;
                int number = stream.post(request.addresses[buffer], request.capacities[buffer], request.regions[buffer],
                        tag);
                if (number == NO_REQUEST) {
                    return;
                }
                request.numbers[buffer] = number;
                posted++;
            }
        }
    }

    /**
     * @param maxRecvs maximum number of buffers of one receive
     * @param more     streams that the sending end connects when it needs them
     */
    TaggedReceiver(FrameReceiver first, Network network, int maxRecvs, List<Pending<FrameReceiver>> more) {
        this.first = first;
        this.maxRecvs = maxRecvs;
        regions = new RegionTable(network);
        pending = new ArrayList<>(more);
        silent.add(first);
        for (int i = 0; i < REQUESTS; i++) {
            requests[i] = new GroupedRequest();
        }
    }

    @Override
    public int maxRecvs() {
        return maxRecvs;
    }

    @Override
    public int register(long address, long bytes, boolean onDevice, long handle) {
        return regions.add(address, bytes);
    }

    @Override
    public void deregister(int region) {
        for (GroupedRequest request : requests) {
            if (request.count > 0) {
                queues.forEach(TaggedReceiver::abort);
            }
        }
        regions.remove(region);
    }

    private static void abort(TagQueue queue) {
        if (queue.stream != null) {
            queue.stream.abort();
        }
    }

    @Override
    public int post(long address, long bytes, int region, int tag) {
        throw new UnsupportedOperationException(this + " receives, and does not send");
    }

    @Override
    public int receive(long connection, int count, long addresses, long lengths, long tags, long memories) {
        int number = 0;
        while (number < REQUESTS && requests[number].count > 0) {
            number++;
        }
        if (number == REQUESTS) {
            return NO_REQUEST;
        }
        GroupedRequest request = requests[number];
        for (int i = 0; i < count; i++) {
            long bytes = NativeMemory.getLong(lengths + (long) i * Long.BYTES);
            request.capacities[i] = bytes;
            request.addresses[i] = NativeMemory.getLong(addresses + (long) i * Long.BYTES);
            request.regions[i] = ConnectionHandle.regionOf(connection, bytes,
                    NativeMemory.getLong(memories + (long) i * Long.BYTES));
            // All buffers are checked before one of them is posted. The call throws if a buffer is outside registered
            // memory.
            if (bytes > 0) {
                RegionTable.offset(regions.get(request.regions[i]), request.addresses[i], bytes);
            }
        }
        request.count = count;
        for (int i = 0; i < count; i++) {
            TagQueue queue = queue(NativeMemory.getInt(tags + (long) i * Integer.BYTES));
            request.queues[i] = queue;
            request.numbers[i] = NOT_POSTED;
            request.sizes[i] = FallbackConnection.PENDING;
            queue.add(number, i);
            queue.advance(requests);
        }
        return number;
    }

    private TagQueue queue(int tag) {
        for (int i = 0; i < queues.size(); i++) {
            if (queues.get(i).tag == tag) {
                return queues.get(i);
            }
        }
        TagQueue added = new TagQueue(tag);
        queues.add(added);
        return added;
    }

    @Override
    public boolean test(int number, long sizes) {
        if (number >= REQUESTS || requests[number].count == 0) {
            throw new IllegalArgumentException(
                    "request " + number + " was never begun, or was reported to NCCL as done before");
        }
        if (lacksStream()) {
            listen();
        }
        GroupedRequest request = requests[number];
        boolean done = true;
        for (int i = 0; i < request.count; i++) {
            request.queues[i].advance(requests);
            if (request.sizes[i] == FallbackConnection.PENDING && request.numbers[i] != NOT_POSTED) {
                request.sizes[i] = request.queues[i].stream.test(request.numbers[i]);
            }
            done &= request.sizes[i] != FallbackConnection.PENDING;
        }
        if (done) {
            for (int i = 0; i < request.count && sizes != 0; i++) {
                NativeMemory.putInt(sizes + (long) i * Integer.BYTES, request.sizes[i]);
            }
            request.count = 0;
        }
        return done;
    }

    private boolean lacksStream() {
        for (int i = 0; i < queues.size(); i++) {
            if (queues.get(i).stream == null) {
                return true;
            }
        }
        return false;
    }

    /** Adds streams that were connected, and reads the tags of their first messages. */
    private void listen() {
        for (int i = 0; i < pending.size(); i++) {
            FrameReceiver made = pending.get(i).poll();
            if (made != null) {
                pending.remove(i--);
                silent.add(made);
            }
        }
        for (int i = 0; i < queues.size(); i++) {
            if (queues.get(i).stream != null) {
                // This call throws if the sender is lost. It is needed because a lost sender connects no further
                // stream, and the pending streams do not report the loss.
                queues.get(i).stream.progress();
            }
        }
        for (int i = 0; i < silent.size(); i++) {
            FrameReceiver stream = silent.get(i);
            stream.progress();
            FrameHeader header = stream.poll();
            if (header != null) {
                silent.remove(i--);
                TagQueue queue = queue((int) header.word(FallbackConnection.TAG));
                if (queue.stream != null) {
                    throw new ConnectionException(stream + ": a second stream of tag " + queue.tag);
                }
                queue.stream = new Receiver(stream, regions);
            }
        }
    }

    @Override
    public void close() {
        pending.forEach(Pending::close);
        silent.forEach(FrameReceiver::close);
        for (TagQueue queue : queues) {
            if (queue.stream != null) {
                queue.stream.close();
            }
        }
        regions.close();
    }

    @Override
    public String toString() {
        return first.toString();
    }
}
