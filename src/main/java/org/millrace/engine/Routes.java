package org.millrace.engine;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.Route;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.CollectiveFunction.InPlace;
import org.millrace.device.FunctionTable;
import org.millrace.engine.Announcer.OperationId;

/**
 * Records the newest operation, and describes the route of its data. The route is derived from the announcements of the
 * operation to the connectors. Written by the announcing thread. Readable by any thread.
 */
final class Routes {

    private static final String COLLNET_EXCLUDED =
            "COLLNET: NCCL_COLLNET_ENABLE, NCCL_ALGO, MILLRACE_COLLNET_MAX_BYTES or the network's reductions exclude it";

    private final Connectors connectors;
    private CollectiveFunction.Algorithm algorithm;
    private @Nullable OperationId operation;
    /** Whether the operation's memory is registered so that peers' devices can read it. */
    private boolean read;

    public Routes(Connectors connectors) {
        this.connectors = connectors;
    }

    synchronized void collective(CollectiveFunction.Algorithm taken, @Nullable OperationId id, boolean readable) {
        algorithm = taken;
        operation = id;
        read = readable;
    }

    public void direct(boolean readable) {
        collective(CollectiveFunction.Algorithm.DIRECT, null, readable);
    }

    /** Returns the route of the last operation; empty if no data was sent or received yet. */
    public synchronized Optional<Route> last() {
        if (algorithm == null) {
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
        String mode = read && used.stream().anyMatch(Connector::isDirect) ? "PTR" : any.mode();
        return Optional.of(new Route(algorithm.label(), text(any.last().protocol()), mode, List.copyOf(transports),
                refusals(transports, any.last().protocol())));
    }

    private int index() {
        return algorithm == CollectiveFunction.Algorithm.DIRECT ? KernelChannel.POINT_TO_POINT
                : KernelChannel.COLLECTIVE;
    }

    private List<Connector<?>> used(List<Connector<?>> all) {
        List<Connector<?>> used = new ArrayList<>(all);
        used.removeIf(connector -> connector.last() == null || connector.last().steps() == 0
                || operation != null && connector.last().opCount() != operation.number());
        return used;
    }

    private static boolean combinesInSlots(Operation operation) {
        return FunctionTable.STANDARD.collective(operation, CollectiveFunction.Algorithm.RING)
                .inPlace() == InPlace.NEVER;
    }

    private static String text(Protocol protocol) {
        return protocol == Protocol.SIMPLE ? "Simple" : protocol.name();
    }

    private List<String> refusals(Collection<String> transports, Protocol protocol) {
        List<String> refusals = new ArrayList<>(connectors.refusals());
        boolean overNet = !transports.isEmpty() && transports.stream().allMatch(each -> each.startsWith("NET"));
        if (algorithm.isCollNet()) {
            refusals.add("PTR: a collective network uses slots only");
        } else if (protocol != Protocol.SIMPLE) {
            refusals.add("PTR: Simple only");
        } else if (transports.stream().anyMatch(each -> each.endsWith(" by copy"))) {
            refusals.add("PTR: a proxy that copies does so from slots");
        } else if (!overNet) {
            refusals.add(
                    "PTR: not registered, or not allocated by the communicator's device, or less than MILLRACE_REGISTERED_THRESHOLD");
        } else if (operation != null && combinesInSlots(operation.operation())) {
            refusals.add("PTR: combined elements go through slots");
        } else {
            refusals.add("PTR: less than MILLRACE_PTR_THRESHOLD, and not registered");
        }
        if (algorithm == CollectiveFunction.Algorithm.TREE && overNet) {
            refusals.add("PTR: a tree combines in slots");
        }
        if (algorithm == CollectiveFunction.Algorithm.DIRECT) {
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
        if (algorithm.isCollNet()) {
            refusals.add("LL: COLLNET runs Simple only");
            refusals.add("LL128: COLLNET runs Simple only");
        }
        if (operation == null || operation.operation() != Operation.ALL_REDUCE) {
            refusals.add("tree: all_reduce only");
        }
        if (operation == null || !CollNet.OPERATIONS.contains(operation.operation())) {
            refusals.add("COLLNET: all_reduce, all_gather and reduce_scatter only");
        } else if (operation.operation() != Operation.ALL_REDUCE && !algorithm.isCollNet()) {
            refusals.add("collnetchain: all_reduce only");
            refusals.add(COLLNET_EXCLUDED);
        } else if (!algorithm.isCollNet()) {
            refusals.add(COLLNET_EXCLUDED);
        }
        return refusals;
    }
}
