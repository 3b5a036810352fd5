package org.millrace.cli;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.Operation;
import org.millrace.Route;
import org.millrace.config.Settings;

/**
 * Cells that one communicator runs, as they differ in the collective only.
 *
 * @param number    of the group, which names its rendezvous
 * @param ranks     how many
 * @param processes whether each is a process
 * @param variant   transport
 * @param algorithm ring, tree, collnetdirect or collnetchain
 * @param protocol  LL, LL128 or Simple
 * @param mode      where data lies
 * @param cells     what it runs
 */
record CellGroup(int number, int ranks, boolean processes, TransportVariant variant, String algorithm, String protocol,
        Mode mode, List<Cell> cells) {

    /**
     * One cell of the table: a collective in a group.
     *
     * @param number    index among all cells
     * @param operation the collective
     */
    record Cell(int number, Operation operation) {
    }

    /** Where data lies while it travels, as {@link org.millrace.Route#mode} has it. */
    enum Mode {
        /** In a connection's own slots. */
        NORMAL,
        /** In slots that connections share. */
        OFFSET,
        /** In the operands, registered or not. */
        PTR;

        Map<String, String> settings() {
            return Map.of("NCCL_NET_SHARED_BUFFERS", this == OFFSET ? "1" : "0", "MILLRACE_PTR_THRESHOLD",
                    this == PTR ? "0" : "1024G", "MILLRACE_REGISTERED_THRESHOLD", "0");
        }
    }

    /** Where there is one, sends and receives of up to this size travel in LL. */
    private static final String LL_THRESHOLD = "NCCL_P2P_LL_THRESHOLD";

    /** What was asked for, over what the user has set. */
    Map<String, String> settings(Map<String, String> user) {
        Map<String, String> settings = new LinkedHashMap<>(user);
        settings.putAll(TransportVariant.neutral());
        settings.putAll(variant.settings());
        settings.put("NCCL_PROTO", protocol);
        settings.put("NCCL_ALGO", algorithm.startsWith("collnet") ? algorithm + ",ring" : algorithm);
        settings.putAll(mode.settings());
        if (Settings.all().stream().anyMatch(each -> each.name().equals(LL_THRESHOLD))) {
            settings.put(LL_THRESHOLD, protocol.equals("LL") ? "1G" : "0");
        }
        return settings;
    }

    /**
     * Whether some collective can run so, as far as that is known beforehand: what is refused says why only when it is
     * tried.
     */
    boolean mayRun() {
        boolean simple = protocol.equals("Simple");
        boolean network = variant.transport().equals("NET");
        return switch (mode) {
            case NORMAL -> simple || !algorithm.startsWith("collnet");
            case OFFSET -> simple && network && algorithm.equals("ring");
            case PTR -> simple && !algorithm.startsWith("collnet") && !variant.label().endsWith("by copy")
                    && !(network && algorithm.equals("tree"));
        };
    }

    /**
     * Compares what ran with what was asked for. What all ranks see alike comes first: a rank that sends nothing sees
     * no transport.
     *
     * @return why it is not the same, empty if it is
     */
    RouteMismatch difference(Route ran) {
        String direct = algorithm.equals("ring") ? "direct" : algorithm;
        if (!ran.algorithm().equals(algorithm) && !ran.algorithm().equals(direct)) {
            return algorithm.startsWith("collnet")
                    && ran.refusals().stream().noneMatch(each -> each.startsWith(algorithm))
                            ? RouteMismatch.of("COLLNET", ran.algorithm(), ran, false)
                            : RouteMismatch.of(algorithm, ran.algorithm(), ran, true);
        }
        if (!ran.protocol().equals(protocol)) {
            return RouteMismatch.of(protocol, ran.protocol(), ran, true);
        }
        if (!ran.transports().isEmpty() && !variant.label().equals("COLLNET")
                && !ran.transports().stream().allMatch(this::isWay)) {
            return RouteMismatch.ofTransport(variant.transport(), String.join(", ", ran.transports()), ran,
                    TransportVariant.others());
        }
        return ran.mode().equals(mode.name()) ? RouteMismatch.NONE
                : RouteMismatch.of(mode.name(), ran.mode(), ran, false);
    }

    private boolean isWay(String transport) {
        return transport.equals(variant.label())
                || TransportVariant.others().contains(variant.label()) && transport.startsWith(variant.label());
    }

    /**
     * What a cell's data and types are made from: its own names, and not its number, which is another one where less is
     * selected.
     */
    long seed(long seed, Cell cell) {
        return 31 * seed
                + String.join("/", cell.operation().label(), algorithm, variant.label(), protocol, mode.name(), where())
                        .hashCode();
    }

    String where() {
        return ranks + (processes ? " processes" : " threads");
    }
}
