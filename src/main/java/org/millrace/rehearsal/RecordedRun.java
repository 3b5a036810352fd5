package org.millrace.rehearsal;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.millrace.DataType;
import org.millrace.Operation;

/**
 * The content of a recording.
 *
 * @param processes   processes that wrote the recording
 * @param steps       steps of all processes, ordered by time
 * @param calls       operations of all processes, ordered by time
 * @param lost        number of dropped records in all processes. A record is dropped if no memory is prepared for it
 * @param truncated   whether the oldest records have been overwritten
 * @param connections connections with steps; all connections if steps were not read
 * @param threads     largest number of threads that served connections in one process
 */
public record RecordedRun(List<Process> processes, List<Step> steps, List<Call> calls, long lost, boolean truncated,
        List<Connection> connections, int threads) {

    /**
     * Kind of the sending half of a transfer, see {@link Call#kind}. Operations other than sends and receives have the
     * labels of {@link Operation}.
     */
    public static final String SEND = "send";
    /** Kind of the receiving half of a transfer. */
    public static final String RECEIVE = "receive";

    /**
     * A recorded process.
     *
     * @param link value of {@code MILLRACE_LINK}; empty if it was not set
     */
    public record Process(String host, long pid, Optional<String> link) {
    }

    /**
     * A communicator of a process.
     *
     * @param hash number of the communicator in NCCL or the engine, the same on all its ranks
     */
    public record Group(Process process, long hash, int rank, int size) {
    }

    /**
     * One end of a connection, which either sends or receives. Unknown numbers are -1.
     *
     * @param hash     number of the communicator
     * @param peer     rank of the peer
     * @param kind     kind of the connection, as in {@link org.millrace.trace.ConnectionIdentity#kind}
     * @param key      key that both ends of the connection have in common
     * @param peerText name that the network gives the peer
     */
    public record Connection(Process process, long hash, int rank, int peer, int channel, String direction, int kind,
            String key, String network, String peerText) {

        public boolean sends() {
            return !direction.equals("RECEIVE");
        }

        @Override
        public String toString() {
            return "rank " + (rank < 0 ? "?" : rank) + (sends() ? " -> " : " <- ")
                    + (peer < 0 ? peerText : "rank " + peer) + (channel < 0 ? "" : ", channel " + channel) + ", "
                    + network;
        }
    }

    /**
     * A frame of a connection, as one end recorded it. {@code taken} and {@code done} are nanoseconds since 1970,
     * {@code idle} and {@code blocked} are durations in nanoseconds.
     *
     * @param protocol number of the protocol, as in {@link org.millrace.abi.Protocol#ordinal}
     * @param taken    time when the proxy passed the frame, or the slot that will receive the frame, to the network
     * @param done     time when the network had read the sent frame, or when the received frame was reported to the
     *                 device
     * @param end      number of the first step after the frame
     * @param size     size of the frame in bytes
     * @param idle     time before this frame during which no frame was ready, because the kernel or the peer had
     *                 supplied none
     * @param blocked  time from the moment when the frame was available until {@code taken}. In this time, the network
     *                 or the device had no room for the frame
     */
    public record Step(Connection connection, int protocol, long taken, long done, long end, long size, long idle,
            long blocked) {

        /** {@return time that the frame waited for the kernel, in nanoseconds} */
        public long kernelWait() {
            return connection.sends() ? idle : blocked;
        }

        /** {@return time that the frame waited for the network or the peer, in nanoseconds} */
        public long wireWait() {
            return done - taken + (connection.sends() ? blocked : idle);
        }
    }

    /**
     * An operation of a rank. Times are nanoseconds since 1970.
     *
     * @param group    this rank's communicator, on which the operation runs
     * @param kind     label of the operation; {@link #SEND} or {@link #RECEIVE} for the halves of a transfer
     * @param number   number of the operation in this rank's trace, among all operations of the communicator; it may
     *                 differ between ranks
     * @param enqueued time of the call that enqueued the operation
     * @param started  start time; 0 if unknown
     * @param ended    end time; 0 if unknown
     * @param bytes    size of one rank's data; -1 if unknown
     * @param count    count that was passed to the call
     * @param type     number of the element type, as in {@link DataType#code}; -1 if unknown
     * @param sequence number that all ranks of the operation share; for a send or receive, number of the transfer among
     *                 the transfers to or from the peer; -1 if unknown
     * @param peer     rank of the peer; -1 without a peer
     * @param root     rank of the root; -1 without a root
     * @param launch   number of the kernel, which several operations may share; -1 if unknown
     */
    public record Call(Group group, String kind, long number, long enqueued, long started, long ended, long bytes,
            long count, int type, long sequence, int peer, int root, long launch) {

        /** {@return whether the operation is a send or a receive} */
        public boolean isTransfer() {
            return kind.equals(SEND) || kind.equals(RECEIVE);
        }

        /** {@return nanoseconds from the start to the end of the operation; -1 if unknown} */
        public long nanos() {
            return started == 0 || ended == 0 ? -1 : ended - started;
        }

        /** {@return kind and size of the operation} */
        public Kind what() {
            return new Kind(kind, bytes);
        }
    }

    /** Kind and size of operations. Tables have one row for each kind and size. */
    public record Kind(String name, long bytes) implements Comparable<Kind> {

        @Override
        public int compareTo(Kind other) {
            int byName = name.compareTo(other.name);
            return byName != 0 ? byName : Long.compare(bytes, other.bytes);
        }
    }

    /**
     * {@return the earliest time of a step or an operation in the recording; {@code Long.MAX_VALUE} if it has neither}
     */
    public long begin() {
        return Math.min(steps.isEmpty() ? Long.MAX_VALUE : steps.getFirst().taken(),
                calls.isEmpty() ? Long.MAX_VALUE : calls.getFirst().enqueued());
    }

    /**
     * {@return the operations of each rank of each communicator, in the order of the calls} The first key is the hash
     * of the communicator, and the second key is the rank.
     */
    public Map<Long, Map<Integer, List<Call>>> byRank() {
        Map<Long, Map<Integer, List<Call>>> all = new TreeMap<>();
        for (Call call : calls) {
            all.computeIfAbsent(call.group.hash, hash -> new TreeMap<>())
                    .computeIfAbsent(call.group.rank, rank -> new ArrayList<>())
                    .add(call);
        }
        return all;
    }

    /** {@return the known durations of the operations of each kind, in nanoseconds; shortest first} */
    public Map<Kind, long[]> times() {
        return times(calls);
    }

    /** {@return the known durations of the given operations by kind, in nanoseconds; shortest first} */
    public static Map<Kind, long[]> times(List<Call> calls) {
        Map<Kind, LongStream.Builder> all = new TreeMap<>();
        for (Call call : calls) {
            if (call.nanos() >= 0) {
                all.computeIfAbsent(call.what(), kind -> LongStream.builder()).add(call.nanos());
            }
        }
        Map<Kind, long[]> sorted = new TreeMap<>();
        all.forEach((kind, times) -> sorted.put(kind, times.build().sorted().toArray()));
        return sorted;
    }

    /** {@return the median of sorted numbers; 0 for no numbers} */
    public static long median(long[] sorted) {
        return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
    }

    /**
     * {@return the number of a rank's channels} Under libnccl the channel of a connection is unknown. The result is
     * then the maximum number of connections to one peer.
     */
    public int channels() {
        List<Connection> used = connections.stream().filter(Connection::sends).toList();
        long named = used.stream().filter(one -> one.kind == 0).mapToInt(Connection::channel).distinct().count();
        long unnamed = used.stream()
                .filter(one -> one.kind < 0)
                .collect(Collectors.groupingBy(one -> List.of(one.process, one.hash, one.peerText),
                        Collectors.counting()))
                .values()
                .stream()
                .mapToLong(count -> count)
                .max()
                .orElse(1);
        return (int) Math.max(1, Math.max(named, unnamed));
    }

    /** {@return the kind of an operation, by its name in the trace or in NCCL} */
    static String kind(String name) {
        if (name.equals("Send") || name.equals("Recv")) {
            return name.equals("Send") ? SEND : RECEIVE;
        }
        for (Operation each : Operation.values()) {
            if (each.ncclName().equals(name)) {
                return each.label();
            }
        }
        return name;
    }

    /** {@return the size in bytes of a number of elements; -1 if the type of the elements is unknown} */
    static long bytes(long count, int type) {
        try {
            return count * DataType.ofCode(type).bytes();
        } catch (IllegalArgumentException unknown) {
            return -1;
        }
    }
}
