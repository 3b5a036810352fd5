package org.millrace.engine;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.millrace.Route;
import org.millrace.abi.Protocol;
import org.millrace.engine.connect.Connector;
import org.millrace.engine.connect.Connectors;
import org.millrace.proxy.OperationSignature;
import org.millrace.transport.Connections;

/**
 * Remembers what the last operation was, and says how it travels by what its connectors were told. Told by the thread
 * that announces, asked by any.
 */
final class Routes {

    private enum Way {
        RING, TREE, COLLNET, DIRECT
    }

    private static final Set<Integer> COMBINING = Set.of(OperationSignature.REDUCE, OperationSignature.REDUCE_SCATTER);

    private final Connectors connectors;
    private Way way;
    private Identity operation;

    Routes(Connectors connectors) {
        this.connectors = connectors;
    }

    void ring(Identity identity) {
        set(Way.RING, identity);
    }

    void tree(Identity identity) {
        set(Way.TREE, identity);
    }

    void collNet(Identity identity) {
        set(Way.COLLNET, identity);
    }

    /** Sends and receives. */
    void direct() {
        set(Way.DIRECT, null);
    }

    private synchronized void set(Way taken, Identity identity) {
        way = taken;
        operation = identity;
    }

    /** Empty if nothing travelled yet. */
    synchronized Optional<Route> last() {
        if (way == Way.COLLNET) {
            return Optional.of(new Route("collnet", text(Protocol.SIMPLE), "NORMAL", List.of("COLLNET"),
                    refusals(List.of(), Protocol.SIMPLE)));
        }
        if (way == null) {
            return Optional.empty();
        }
        List<Connector<?>> used = used(connectors.senders(index()));
        TreeSet<String> transports = new TreeSet<>();
        for (Connector<?> connector : used) {
            transports.add(connector.transport() == null ? "not connected yet" : connector.transport());
        }
        used.addAll(used(connectors.receivers(index())));
        if (used.isEmpty()) {
            return Optional.empty();
        }
        Connector<?> any = used.getFirst();
        return Optional.of(new Route(way.name().toLowerCase(Locale.ROOT), text(any.last().protocol()), any.mode(),
                List.copyOf(transports), refusals(transports, any.last().protocol())));
    }

    private int index() {
        return way == Way.DIRECT ? Connections.POINT_TO_POINT : Connections.COLLECTIVE;
    }

    private List<Connector<?>> used(List<Connector<?>> all) {
        List<Connector<?>> used = new ArrayList<>(all);
        used.removeIf(connector -> connector.last() == null || connector.last().steps() == 0
                || operation != null && connector.last().opCount() != operation.number());
        return used;
    }

    private static String text(Protocol protocol) {
        return protocol == Protocol.SIMPLE ? "Simple" : protocol.name();
    }

    private List<String> refusals(Collection<String> transports, Protocol protocol) {
        List<String> refusals = new ArrayList<>(connectors.refusals());
        boolean overNet = !transports.isEmpty() && transports.stream().allMatch(each -> each.startsWith("NET"));
        if (!overNet) {
            refusals.add("PTR: over NET only");
        } else if (protocol != Protocol.SIMPLE) {
            refusals.add("PTR: Simple only");
        } else if (operation != null && COMBINING.contains(OperationSignature.kind(operation.signature()))) {
            refusals.add("PTR: what is combined goes through slots");
        } else {
            refusals.add("PTR: less than MILLRACE_PTR_THRESHOLD, and not registered");
        }
        if (way == Way.TREE) {
            refusals.add("PTR: a tree combines in slots");
        }
        if (way == Way.DIRECT) {
            refusals.add("LL: sends and receives choose their protocol by size, NCCL_PROTO is for collectives");
            refusals.add("LL128: sends and receives choose their protocol by size, NCCL_PROTO is for collectives");
            if (!overNet) {
                refusals.add("OFFSET: over NET only");
            } else if (protocol != Protocol.SIMPLE) {
                refusals.add("OFFSET: Simple only");
            }
        } else {
            refusals.add("OFFSET: sends and receives only");
        }
        if (way == Way.COLLNET) {
            refusals.add("LL: COLLNET runs Simple only");
            refusals.add("LL128: COLLNET runs Simple only");
        }
        if (operation == null || OperationSignature.kind(operation.signature()) != OperationSignature.ALL_REDUCE) {
            refusals.add("tree: all_reduce only");
            refusals.add("COLLNET: all_reduce only");
        } else if (way != Way.COLLNET) {
            refusals.add(
                    "COLLNET: NCCL_COLLNET_ENABLE, MILLRACE_COLLNET_MAX_BYTES or the network's reductions exclude it");
        }
        return refusals;
    }
}
