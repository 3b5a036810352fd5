package org.millrace;

import java.util.List;

/**
 * The route of an operation's data: the choices that were made, and the reasons against other choices. Routes are for
 * logs, and for programs that must verify that their settings took effect.
 *
 * @param algorithm  {@code "ring"}, {@code "tree"}, {@code "collnet"}, or {@code "direct"} for sends and receives and
 *                   operations composed of them
 * @param protocol   {@code "LL"}, {@code "LL128"} or {@code "Simple"}
 * @param mode       location of the data in transit: {@code "NORMAL"} in the connection's own slots, {@code "OFFSET"}
 *                   in slots that connections share, {@code "PTR"} in the user's memory
 * @param transports transports that this rank sends over, without duplicates, for instance {@code "P2P"},
 *                   {@code "SHM by copy"} or {@code "NET socket"}; empty if this rank only receives
 * @param refusals   choices that were not possible, for instance {@code "P2P: other process 4711"} or
 *                   {@code "tree: all_reduce only"}. Each text has the name of the choice, a colon and the reason
 */
public record Route(String algorithm, String protocol, String mode, List<String> transports, List<String> refusals) {

    /** Copies the lists, so that the route is immutable. */
    public Route {
        transports = List.copyOf(transports);
        refusals = List.copyOf(refusals);
    }
}
