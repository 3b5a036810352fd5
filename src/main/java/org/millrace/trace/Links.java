package org.millrace.trace;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The ranks and the connections of one communicator, from the traces of all processes: a connection's two ends are
 * found by the key that they have in common, or by their ranks, channel and kind.
 *
 * @param hash what its ranks have in common, and perhaps another job's
 */
record Links(long hash, List<TracedRank> members, List<Link> all, List<GinQueue> gin) {

    private static final class Ends {
        private @Nullable TracedRank from;
        private @Nullable TracedConnection sender;
        private @Nullable TracedRank to;
        private @Nullable TracedConnection receiver;
    }

    /** Of each communicator that is there. */
    static List<Links> of(List<TracedProcess> processes, Function<TracedProcess, ProcessState> states) {
        Map<Long, List<TracedRank>> ranks = new LinkedHashMap<>();
        Map<Long, Map<TracedConnection.Key, Ends>> ends = new HashMap<>();
        for (TracedProcess process : processes) {
            Map<Long, List<TracedRank>> own = membersOf(process, states.apply(process));
            own.forEach((hash, some) -> ranks.computeIfAbsent(hash, key -> new ArrayList<>()).addAll(some));
            for (TracedConnection connection : process.connections()) {
                if (isThere(process, connection)) {
                    long hash = connection.identity().communicator();
                    TracedRank member = member(own.get(hash), connection.identity().rank());
                    add(ends.computeIfAbsent(hash, key -> new LinkedHashMap<>()), connection, member);
                }
            }
        }
        List<Links> all = new ArrayList<>();
        ranks.forEach((hash, some) -> all.addAll(Job.apart(hash, some,
                ends.getOrDefault(hash, Map.of()).values().stream().map(two -> whole(two, some)).toList())));
        return all;
    }

    /**
     * The ranks that a process has of each communicator: those that were described, and those that connections name.
     */
    private static Map<Long, List<TracedRank>> membersOf(TracedProcess process, ProcessState state) {
        Map<Long, List<TracedRank>> members = new LinkedHashMap<>();
        for (TracedCommunicator communicator : process.communicators()) {
            if (communicator.state() != TracedState.CLOSED) {
                members.computeIfAbsent(communicator.hash(), key -> new ArrayList<>())
                        .add(new TracedRank(process, state, communicator.hash(), communicator.rank(), communicator));
            }
        }
        for (TracedGin context : process.gin()) {
            if (context.state() != TracedState.CLOSED && context.communicator() != 0) {
                List<TracedRank> some = members.computeIfAbsent(context.communicator(), key -> new ArrayList<>());
                if (some.stream().noneMatch(each -> each.rank() == context.rank())) {
                    some.add(new TracedRank(process, state, context.communicator(), context.rank(), null));
                }
            }
        }
        for (TracedConnection connection : process.connections()) {
            ConnectionIdentity identity = connection.identity();
            if (!isThere(process, connection)) {
                continue;
            }
            List<TracedRank> some = members.computeIfAbsent(identity.communicator(), key -> new ArrayList<>());
            if (identity.rank() < 0 ? some.isEmpty()
                    : some.stream().noneMatch(each -> each.rank() == identity.rank())) {
                int rank = identity.rank() < 0 ? process.rank() : identity.rank();
                some.add(new TracedRank(process, state, identity.communicator(), rank, null));
            }
        }
        return members;
    }

    /** Who closes a communicator has heard what had failed of it. */
    private static boolean isThere(TracedProcess process, TracedConnection connection) {
        ConnectionIdentity identity = connection.identity();
        List<TracedCommunicator> known = process.communicators()
                .stream()
                .filter(each -> each.hash() == identity.communicator() && each.rank() == identity.rank())
                .toList();
        return connection.state() != TracedState.CLOSED && (connection.state() != TracedState.FAILED || known.isEmpty()
                || known.stream().anyMatch(each -> each.state() != TracedState.CLOSED));
    }

    /** The one of a rank; of a connection that does not name its rank the only one that there is. */
    private static TracedRank member(List<TracedRank> some, int rank) {
        return some.stream()
                .filter(each -> each.rank() == rank)
                .findFirst()
                .orElseGet(() -> some.size() == 1 ? some.getFirst()
                        : new TracedRank(some.getFirst().process(), some.getFirst().state(), some.getFirst().hash(), -1,
                                null));
    }

    private static void add(Map<TracedConnection.Key, Ends> all, TracedConnection connection, TracedRank member) {
        Ends ends = all.computeIfAbsent(connection.key(), none -> new Ends());
        if (connection.sends()) {
            ends.from = member;
            ends.sender = connection;
        } else {
            ends.to = member;
            ends.receiver = connection;
        }
    }

    private static Link whole(Ends ends, List<TracedRank> members) {
        TracedRank from = ends.from == null ? peer(ends.receiver, members) : ends.from;
        TracedRank to = ends.to == null ? peer(ends.sender, members) : ends.to;
        return new Link(from, ends.sender, to, ends.receiver);
    }

    /** The other end's rank, where it has written down nothing of the connection, or no more. */
    private static @Nullable TracedRank peer(@Nullable TracedConnection end, List<TracedRank> members) {
        if (end == null) {
            return null;
        }
        int rank = end.identity().peer();
        String text = end.identity().peerText();
        return members.stream()
                .filter(each -> rank >= 0 ? each.rank() == rank : beginsWithPid(text, each.process().identity().pid()))
                .findFirst()
                .orElse(null);
    }

    private static boolean beginsWithPid(String text, long pid) {
        String begin = "pid " + pid;
        return text.startsWith(begin)
                && (text.length() == begin.length() || !Character.isDigit(text.charAt(begin.length())));
    }
}
