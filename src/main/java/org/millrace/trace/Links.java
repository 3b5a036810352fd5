package org.millrace.trace;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedRank.ProcessState;

/**
 * The ranks and the connections of one communicator, as found in the traces of all processes. The two ends of a
 * connection are recognized by the key that they share or, without a key, by their ranks, channel and kind.
 *
 * @param hash hash of the communicator; a communicator of another job may have the same hash
 */
record Links(long hash, List<TracedRank> members, List<Link> all, List<GinQueue> gin) {

    private static final class Ends {
        private @Nullable TracedRank from;
        private @Nullable TracedConnection sender;
        private @Nullable TracedRank to;
        private @Nullable TracedConnection receiver;
    }

    /** Returns one object for each communicator in the traces. */
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
     * Returns the ranks that a process has in each communicator, by the communicator's hash. These are the ranks for
     * which the trace contains a communicator, a GIN context or a connection.
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

    /**
     * Returns whether a connection is part of the analysis. A failed connection of a closed communicator is left out,
     * because the program that closed the communicator was informed of the failure.
     */
    private static boolean isThere(TracedProcess process, TracedConnection connection) {
        ConnectionIdentity identity = connection.identity();
        List<TracedCommunicator> known = process.communicators()
                .stream()
                .filter(each -> each.hash() == identity.communicator() && each.rank() == identity.rank())
                .toList();
        return connection.state() != TracedState.CLOSED && (connection.state() != TracedState.FAILED || known.isEmpty()
                || known.stream().anyMatch(each -> each.state() != TracedState.CLOSED));
    }

    /**
     * Returns the rank with the given number from a process's ranks in a communicator. The number is -1 for a
     * connection that does not name its rank. The result is then the process's only rank, or an unknown rank if the
     * process has several.
     */
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

    /**
     * Returns the rank at the other end of a connection that is traced at one end only; null if this rank is unknown.
     */
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

    /**
     * One of several communicators that have the same hash. Two causes are possible: tables of NCCL before v11 have no
     * hash, and an earlier job may have had the same hash. Connected ranks belong to one communicator. If the hash is
     * not 0, two groups of ranks also belong to one communicator under two conditions: they existed at the same time,
     * and they have no rank number in common.
     */
    static final class Job {

        private final List<TracedRank> ranks;
        private final List<Link> links = new ArrayList<>();

        private Job(List<TracedRank> ranks) {
            this.ranks = ranks;
        }

        static List<Links> apart(long hash, List<TracedRank> ranks, List<Link> links) {
            List<Job> jobs = new ArrayList<>();
            for (TracedRank rank : ranks) {
                jobs.add(new Job(new ArrayList<>(List.of(rank))));
            }
            for (Link link : links) {
                Job from = of(jobs, link.from());
                Job to = of(jobs, link.to());
                Job whole = from == null ? to : from;
                if (whole == null) {
                    continue; // The rank of neither end is known, so the link belongs to no known communicator.
                }
                whole.links.add(link);
                if (to != null && to != whole) {
                    jobs.remove(to);
                    whole.add(to);
                }
            }
            for (int i = 0; hash != 0 && i < jobs.size(); i++) {
                for (int k = jobs.size() - 1; k > i; k--) {
                    if (jobs.get(i).mayBeOneWith(jobs.get(k))) {
                        jobs.get(i).add(jobs.remove(k));
                    }
                }
            }
            return jobs.stream().map(job -> job.links(hash)).toList();
        }

        private static @Nullable Job of(List<Job> jobs, @Nullable TracedRank rank) {
            return rank == null ? null
                    : jobs.stream()
                            .filter(job -> job.ranks.stream().anyMatch(each -> each == rank))
                            .findFirst()
                            .orElse(null);
        }

        private void add(Job other) {
            ranks.addAll(other.ranks);
            links.addAll(other.links);
        }

        private boolean mayBeOneWith(Job other) {
            Set<Integer> numbers = new HashSet<>();
            ranks.forEach(rank -> numbers.add(rank.rank()));
            return other.ranks.stream().noneMatch(rank -> numbers.contains(rank.rank())) && begin() - other.end() <= 0
                    && other.begin() - end() <= 0;
        }

        private long begin() {
            return ranks.stream().mapToLong(TracedRank::opened).min().orElseThrow();
        }

        private long end() {
            return ranks.stream().mapToLong(TracedRank::lastSeen).max().orElseThrow();
        }

        private Links links(long hash) {
            List<TracedRank> members = ranks.stream().sorted(Comparator.comparingInt(TracedRank::rank)).toList();
            return new Links(hash, members, links, GinQueue.of(hash, members));
        }
    }
}
