package org.millrace;

import java.util.List;

/**
 * The path of an operation's data: the choices made, and the reasons against the others. For logs, and for programs
 * that must verify that their choice is in use.
 *
 * @param algorithm  {@code "ring"}, {@code "tree"}, {@code "collnet"}, or {@code "direct"} for sends and receives and
 *                   operations composed of them
 * @param protocol   {@code "LL"}, {@code "LL128"} or {@code "Simple"}
 * @param mode       place of the data in transit: {@code "NORMAL"} in the connection's own slots, {@code "OFFSET"} in
 *                   slots that connections share, {@code "PTR"} in the user's memory
 * @param transports transports that this rank sends over, as in {@code "P2P"}, {@code "SHM by copy"} or
 *                   {@code "NET socket"}, each once; empty if it only receives
 * @param refusals   impossible choices, each as in {@code "P2P: other process 4711"} or
 *                   {@code "tree: all_reduce only"}: the name of the choice, a colon, the reason
 */
public record Route(String algorithm, String protocol, String mode, List<String> transports, List<String> refusals) {

    /** Copies the lists. */
    public Route {
        transports = List.copyOf(transports);
        refusals = List.copyOf(refusals);
    }
}
