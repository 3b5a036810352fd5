package org.millrace.cli;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.Operation;
import org.millrace.Route;
import org.millrace.config.Settings;

/**
 * A group of cells of the table of combinations. One communicator runs all cells of the group, because the cells differ
 * only in the collective.
 *
 * @param number    number of the group; the number identifies the group's rendezvous
 * @param ranks     number of ranks
 * @param processes whether each rank is a process
 * @param variant   transport
 * @param algorithm ring, tree, collnetdirect or collnetchain
 * @param protocol  LL, LL128 or Simple
 * @param mode      location of the data
 * @param cells     cells of the group
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

    /** Location of data in transit, as in {@link org.millrace.Route#mode}. */
    enum Mode {
        /** Data in a connection's own slots. */
        NORMAL,
        /** Data in slots that connections share. */
        OFFSET,
        /** Data in the operands, registered or not. */
        PTR;

        Map<String, String> settings() {
            return Map.of("NCCL_NET_SHARED_BUFFERS", this == OFFSET ? "1" : "0", "MILLRACE_PTR_THRESHOLD",
                    this == PTR ? "0" : "1024G", "MILLRACE_REGISTERED_THRESHOLD", "0");
        }
    }

    /** Setting for the maximum size of sends and receives in LL, for transports that have such a setting. */
    private static final String LL_THRESHOLD = "NCCL_P2P_LL_THRESHOLD";

    /** Returns the settings that request the group's route, in addition to the user's settings. */
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
     * Returns whether a collective may be possible on the group's route, as far as that is known before an attempt. The
     * reason of a refusal is known only after an attempt.
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
     * Compares the algorithm, protocol, transport and mode of the actual and the requested route, in this order. All
     * ranks know the algorithm and the protocol, but a rank that sends nothing knows no transport.
     *
     * @return the difference, empty if there is none
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
     * Returns the seed of a cell's data and types. The seed depends on the names of the cell's properties. It does not
     * depend on the cell's number, which changes with the selection.
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
