package org.millrace.transport;

import java.util.List;

/**
 * Ranks that one connection connects all at once, as a network that reduces does: a peer of each of them, whose number
 * comes behind those of the ranks ({@code comm->nRanks} in NCCL).
 *
 * @param name    for messages, for instance {@code "the collective network"}
 * @param members its ranks, ascending
 */
public record PeerGroup(int number, String name, List<Integer> members) {

    /** Copies the list. */
    public PeerGroup {
        members = List.copyOf(members);
    }
}
