package org.millrace.engine;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * COLLNET transport, which connects the ranks of a group by a network that reduces ({@code collNetTransport} in NCCL).
 * The offer of each rank contains the names of the rank's networks. The ranks use the first network that all of them
 * have. This transport is never used for a connection between two ranks.
 */
final class CollNetTransport implements Transport {

    private static final String NAME = "COLLNET";
    /** Maximum number of channels of a peer group; NCCL's limit is 64. */
    private static final int CHANNELS = 1 << 10;

    private final @Nullable String whyNot;
    private final String limits;
    private final List<CollectiveNetworkProvider> providers;
    private final Map<Integer, CollNetConnection> connections = new HashMap<>();
    private @Nullable CollectiveNetworkProvider chosen;

    /**
     * @param whyNot    reason why this rank does not participate; null if it participates
     * @param limits    settings that must be equal on all ranks, such as {@code "MILLRACE_COLLNET_MAX_BYTES=65536"},
     *                  without blanks
     * @param providers providers in order of preference
     */
    CollNetTransport(@Nullable String whyNot, String limits, List<CollectiveNetworkProvider> providers) {
        this.whyNot = whyNot;
        this.limits = limits;
        this.providers = List.copyOf(providers);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Availability offer() {
        if (whyNot != null) {
            return Availability.no(whyNot);
        }
        List<String> words = new ArrayList<>(List.of(limits));
        providers.forEach(each -> words.add(each.name()));
        return Availability.yes(String.join(" ", words));
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        List<String> mine = List.of(here.offer(NAME).text().split(" "));
        List<String> theirs = List.of(there.offer(NAME).text().split(" "));
        if (!mine.getFirst().equals(theirs.getFirst())) {
            return Availability.no(mine.getFirst() + " on rank " + here.rank() + " and " + theirs.getFirst()
                    + " on rank " + there.rank() + ": it must be the same on all ranks");
        }
        Set<String> common = new LinkedHashSet<>(mine.subList(1, mine.size()));
        common.retainAll(theirs.subList(1, theirs.size()));
        return common.isEmpty()
                ? Availability.no("ranks " + here.rank() + " and " + there.rank() + " have no network in common")
                : Availability.yes(String.join(" ", common));
    }

    /**
     * Selects the first network that all ranks have. All ranks know each other's offers, so they select the same
     * network.
     *
     * @return name of the network; null if the ranks have no network in common
     */
    @Nullable
    String choose(List<PeerInfo> peers) {
        for (CollectiveNetworkProvider each : providers) {
            if (peers.stream().allMatch(peer -> List.of(peer.offer(NAME).text().split(" ")).contains(each.name()))) {
                chosen = each;
                return each.name();
            }
        }
        return null;
    }

    /** {@return whether the network can reduce elements of a type with an operator} */
    boolean reduceSupport(DataType type, ReduceOp op) {
        return chosen.reduceSupport(type, op);
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return connection(request).end(request);
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return connection(request).end(request);
    }

    private CollNetConnection connection(EndRequest request) {
        int number = request.there().rank() * CHANNELS + request.channel();
        return connections.computeIfAbsent(number,
                _ -> new CollNetConnection(chosen, number, () -> connections.remove(number)));
    }
}
