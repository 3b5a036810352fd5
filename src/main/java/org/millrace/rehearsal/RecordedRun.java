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
 * A recording that was read.
 *
 * @param processes   those that wrote it
 * @param steps       of all of them, by time
 * @param calls       operations of all of them, by time
 * @param lost        records for which no room was ready, of all of them
 * @param truncated   whether the oldest records have been overwritten
 * @param connections those that have steps; all, if steps were not read
 * @param threads     that served connections of a process, of the process with the most
 */
public record RecordedRun(List<Process> processes, List<Step> steps, List<Call> calls, long lost, boolean truncated,
        List<Connection> connections, int threads) {

    /** As operations are called: those of {@link Operation}, and the halves of a transfer. */
    public static final String SEND = "send";
    /** See {@link #SEND}. */
    public static final String RECEIVE = "receive";

    /**
     * A process that was recorded.
     *
     * @param link what {@code MILLRACE_LINK} was set to
     */
    public record Process(String host, long pid, Optional<String> link) {
    }

    /**
     * A communicator of a process.
     *
     * @param hash NCCL's, or the engine's number: the same on all its ranks
     */
    public record Group(Process process, long hash, int rank, int size) {
    }

    /**
     * A direction of a connection; what is not known is -1.
     *
     * @param kind as {@link org.millrace.trace.ConnectionIdentity#kind}
     * @param peer as the network names it
     */
    public record Connection(Process process, long hash, int rank, int peer, int channel, String direction, int kind,
            String key, String network, String peerText) {

        /** {@return whether it sends} */
        public boolean sends() {
            return !direction.equals("RECEIVE");
        }

        /** {@return for people} */
        @Override
        public String toString() {
            return "rank " + (rank < 0 ? "?" : rank) + (sends() ? " -> " : " <- ")
                    + (peer < 0 ? peerText : "rank " + peer) + (channel < 0 ? "" : ", channel " + channel) + ", "
                    + network;
        }
    }

    /**
     * A frame of a connection; times are nanoseconds since 1970.
     *
     * @param taken    when the network got it, or got a place for it
     * @param done     when the network had read it, or the device was told of it
     * @param end      the first step after it
     * @param protocol as {@link org.millrace.abi.Protocol#ordinal}
     * @param idle     how long nothing was there to take before it: of a kernel's, or of the peer's
     * @param blocked  how long it was there and could not be taken: for want of room in the network, or in the device
     */
    public record Step(Connection connection, int protocol, long taken, long done, long end, long size, long idle,
            long blocked) {

        /** {@return how long the kernel let it wait} */
        public long kernelWait() {
            return connection.sends() ? idle : blocked;
        }

        /** {@return how long the network, or the peer, let it wait} */
        public long wireWait() {
            return done - taken + (connection.sends() ? blocked : idle);
        }
    }

    /**
     * An operation of a rank; times are nanoseconds since 1970.
     *
     * @param kind     its label; {@link #SEND} or {@link #RECEIVE} for halves of transfers
     * @param number   its number in the communicator of the process
     * @param started  0 if not known
     * @param ended    0 if not known
     * @param bytes    of one rank's data; -1 if not known
     * @param count    as the call was given it
     * @param type     as {@link DataType#code}; -1 if not known
     * @param sequence as the trace counts it; -1 if not known
     * @param peer     -1 if there is none
     * @param root     -1 if there is none
     * @param launch   the same for what one kernel does; -1 if not known
     */
    public record Call(Group group, String kind, long number, long enqueued, long started, long ended, long bytes,
            long count, int type, long sequence, int peer, int root, long launch) {

        /** {@return whether it is a send or a receive} */
        public boolean isTransfer() {
            return kind.equals(SEND) || kind.equals(RECEIVE);
        }

        /** {@return nanoseconds from its kernel's beginning to its end; -1 if not known} */
        public long nanos() {
            return started == 0 || ended == 0 ? -1 : ended - started;
        }

        /** {@return what rows of tables are about: kind and size} */
        public Kind what() {
            return new Kind(kind, bytes);
        }
    }

    /** Operations that a table has a row for. */
    public record Kind(String name, long bytes) implements Comparable<Kind> {

        @Override
        public int compareTo(Kind other) {
            int byName = name.compareTo(other.name);
            return byName != 0 ? byName : Long.compare(bytes, other.bytes);
        }
    }

    /**
     * {@return the earliest time in the recording: of a step or an operation; as large as possible if it has neither}
     */
    public long begin() {
        return Math.min(steps.isEmpty() ? Long.MAX_VALUE : steps.getFirst().taken(),
                calls.isEmpty() ? Long.MAX_VALUE : calls.getFirst().enqueued());
    }

    /** {@return the operations of each rank of a communicator, in their order; by hash and rank} */
    public Map<Long, Map<Integer, List<Call>>> byRank() {
        Map<Long, Map<Integer, List<Call>>> all = new TreeMap<>();
        for (Call call : calls) {
            all.computeIfAbsent(call.group.hash, hash -> new TreeMap<>())
                    .computeIfAbsent(call.group.rank, rank -> new ArrayList<>())
                    .add(call);
        }
        return all;
    }

    /** {@return how long each kind of operation took, in nanoseconds, of all whose time is known; shortest first} */
    public Map<Kind, long[]> times() {
        return times(calls);
    }

    /** {@return the same of some operations} */
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

    /** {@return the middle of sorted numbers; 0 if there are none} */
    public static long median(long[] sorted) {
        return sorted.length == 0 ? 0 : sorted[sorted.length / 2];
    }

    /** {@return how many channels a rank had: under libnccl nobody tells, and it is as many as lead to one peer} */
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

    /** {@return our name of an operation, of the trace's or NCCL's} */
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

    /** {@return the bytes of elements; -1 if their type is not known} */
    static long bytes(long count, int type) {
        try {
            return count * DataType.ofCode(type).bytes();
        } catch (IllegalArgumentException unknown) {
            return -1;
        }
    }
}
