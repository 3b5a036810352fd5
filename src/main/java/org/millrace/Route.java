package org.millrace;

import java.util.List;

/**
 * How an operation travels: what was chosen, and why nothing else was. For logs, and for those who must know that what
 * they asked for is what ran.
 *
 * @param algorithm  {@code "ring"}, {@code "tree"}, {@code "collnet"}, or {@code "direct"} for sends and receives and
 *                   what is made of them
 * @param protocol   {@code "LL"}, {@code "LL128"} or {@code "Simple"}
 * @param mode       where the data lies while it travels: {@code "NORMAL"} in the connection's own slots,
 *                   {@code "OFFSET"} in slots that connections share, {@code "PTR"} in the user's memory
 * @param transports what this rank sends over, as in {@code "P2P"}, {@code "SHM by copy"} or {@code "NET socket"}, each
 *                   once; empty if it only receives
 * @param refusals   what was not possible, each as in {@code "P2P: other process 4711"} or
 *                   {@code "tree: all_reduce only"}: the name of what it was, a colon, the reason
 */
public record Route(String algorithm, String protocol, String mode, List<String> transports, List<String> refusals) {

    /** Copies the lists. */
    public Route {
        transports = List.copyOf(transports);
        refusals = List.copyOf(refusals);
    }
}
