package org.millrace.trace;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One direction of a connection, completed with facts from the traces of other processes. NCCL tells a plugin neither
 * rank nor channel, so the trace of a takeover's connection lacks both. The other end is found by the key that both
 * ends' traces contain.
 *
 * @param rank         rank of this end; -1 if unknown
 * @param channel      number of the channel; -1 if unknown. For a takeover, it is the index of the connection among the
 *                     connections between the two ranks. This index equals the channel's number if all channels have
 *                     the same neighbors
 * @param communicator communicator of the connection; null if its process stored none
 * @param other        the other end; null if no trace contains it
 */
public record TracedLink(TracedProcess process, TracedConnection connection, int rank, int peer, int channel,
        @Nullable TracedCommunicator communicator, @Nullable End other) {

    public record End(TracedProcess process, TracedConnection connection) {
    }

    /** Returns the connections of the processes, except closed ones, ordered by process, then by peer and channel. */
    public static List<TracedLink> of(List<TracedProcess> processes) {
        Map<TracedConnection.Key, List<End>> ends = new HashMap<>();
        for (TracedProcess process : processes) {
            for (TracedConnection connection : process.connections()) {
                if (connection.state() != TracedState.CLOSED) {
                    ends.computeIfAbsent(connection.key(), _ -> new ArrayList<>()).add(new End(process, connection));
                }
            }
        }
        List<TracedLink> links = new ArrayList<>();
        for (TracedProcess process : processes) {
            List<TracedLink> own = new ArrayList<>();
            for (TracedConnection connection : process.connections()) {
                if (connection.state() != TracedState.CLOSED) {
                    own.add(link(process, connection, ends.get(connection.key())));
                }
            }
            links.addAll(numbered(own));
        }
        return links;
    }

    private static TracedLink link(TracedProcess process, TracedConnection connection, List<End> ends) {
        End other = ends.stream().filter(end -> end.connection.sends() != connection.sends()).findFirst().orElse(null);
        int peer = connection.identity().peer();
        return new TracedLink(process, connection, rank(process, connection),
                peer < 0 && other != null ? rank(other.process, other.connection) : peer,
                connection.identity().channel(), communicator(process, connection), other);
    }

    private static @Nullable TracedCommunicator communicator(TracedProcess process, TracedConnection connection) {
        int rank = connection.identity().rank();
        return process.communicators()
                .stream()
                .filter(one -> one.hash() == connection.identity().communicator()
                        && (rank < 0 || one.rank() < 0 || one.rank() == rank))
                .reduce((first, second) -> second)
                .orElse(null);
    }

    private static int rank(TracedProcess process, TracedConnection connection) {
        int said = connection.identity().rank();
        TracedCommunicator communicator = communicator(process, connection);
        return said >= 0 ? said
                : communicator != null && communicator.rank() >= 0 ? communicator.rank() : process.rank();
    }

    /** For each peer, numbers the connections with an unknown channel. */
    private static List<TracedLink> numbered(List<TracedLink> links) {
        record Place(long communicator, int peer, @Nullable Object process, boolean sends) {
        }
        List<TracedLink> sorted = new ArrayList<>(links);
        sorted.sort(Comparator.comparingInt(link -> link.connection.identity().order()));
        Map<Place, Integer> counts = new HashMap<>();
        List<TracedLink> numbered = new ArrayList<>();
        for (TracedLink link : sorted) {
            int channel = link.channel;
            if (channel < 0) {
                Place place = new Place(link.connection.identity().communicator(), link.peer,
                        link.other == null ? link.connection.identity().peerText() : link.other.process.file(),
                        link.connection.sends());
                channel = counts.merge(place, 1, Integer::sum) - 1;
            }
            numbered.add(new TracedLink(link.process, link.connection, link.rank, link.peer, channel, link.communicator,
                    link.other));
        }
        numbered.sort(Comparator.comparingInt((TracedLink link) -> link.rank)
                .thenComparingInt(TracedLink::peer)
                .thenComparing(link -> !link.connection.sends())
                .thenComparingInt(TracedLink::channel));
        return numbered;
    }

    /** Returns whether {@link #of} has counted connections to determine {@link #channel}, which the trace lacks. */
    public boolean isChannelCounted() {
        return connection.identity().channel() < 0;
    }

    public Party waitsFor() {
        return switch (connection.standing()) {
            case IDLE -> connection.sends() ? Party.KERNEL : Party.PEER;
            case UNDER_WAY -> other != null && other.process.isSilent() ? Party.PEER : Party.WIRE;
            case NO_ROOM -> Party.PEER;
            case DEVICE_FULL, UNCONSUMED -> Party.KERNEL;
        };
    }

    public enum Party implements Labelled {
        KERNEL, WIRE, PEER;
    }

    /**
     * Returns the time since the last event, or since the opening of a connection without events, in seconds; 0 if the
     * trace has neither time.
     */
    public double standsSeconds() {
        long since = connection.lastChange() == 0 ? connection.opened() : connection.lastChange();
        return since == 0 ? 0 : Math.max(0, (process.read() - since) / 1e9);
    }
}
