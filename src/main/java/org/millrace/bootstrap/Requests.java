package org.millrace.bootstrap;

import java.time.Duration;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.Decision.Request;
import org.millrace.bootstrap.Recovery.Mail;
import org.millrace.bootstrap.Split.SplitRendezvous;

/** The ranks' requests for one decision, as the coordinator of a {@link Recovery} receives them. Used by one thread. */
final class Requests {

    /** Bounds of the time between two checks whether a rank still listens. */
    private static final int MIN_PAUSE_MILLIS = 20;
    private static final int MAX_PAUSE_MILLIS = 500;

    private final int self;
    private final Mail kind;
    private final int number;
    private final @Nullable ControlPlane at;
    /** Ranks that are not gone. */
    private final BitSet living;
    /** Most recent request of each rank; null if the rank has not asked. */
    private final @Nullable Request[] requests;

    /**
     * @param number number of the decision
     * @param at     control plane that connects this rank, as rank 0, to the higher ranks; null if no other rank can
     *               ask
     * @param living ranks that may ask, including this rank. {@link #await} removes the ranks that are gone
     * @param size   number of ranks of the group
     */
    Requests(int self, Request own, Mail kind, int number, @Nullable ControlPlane at, BitSet living, int size) {
        this.self = self;
        this.kind = kind;
        this.number = number;
        this.at = at;
        this.living = living;
        requests = new Request[size];
        requests[self] = own;
    }

    /** Returns the living ranks that have asked this rank and have not left this rank for another coordinator. */
    private BitSet present() {
        return living.stream()
                .filter(rank -> requests[rank] != null && (rank == self || !at.isGone(rank - self)))
                .collect(BitSet::new, BitSet::set, BitSet::or);
    }

    /**
     * Waits until all living ranks are present, until there is a decision, or until the deadline. Returns the present
     * ranks. A rank that has left this coordinator may decide at another coordinator, so it counts as living.
     *
     * @param meetings  addresses at which living ranks listen
     * @param last      previous decision; null if there is none
     * @param isDecided function that returns whether there is a decision; may throw
     */
    BitSet await(SplitRendezvous[] meetings, byte @Nullable [] last, BooleanSupplier isDecided, Deadline deadline) {
        int pause = MIN_PAUSE_MILLIS;
        try (ListenerProbes probes = new ListenerProbes()) {
            while (at != null && !isDecided.getAsBoolean() && !deadline.expired()) {
                others().filter(rank -> probes.isGone(rank, meetings[rank].address())).forEach(living::clear);
                BitSet all = at.await(this::all, deadline.orIn(Duration.ofMillis(pause)));
                if (all != null) {
                    return all;
                }
                pause = Math.min(2 * pause, MAX_PAUSE_MILLIS);
                others().filter(rank -> requests[rank] != null)
                        .forEach(rank -> at.send(rank - self, Mail.WAITING.tag(number), new byte[0]));
                // Ranks that still ask for the previous decision receive it here, because an earlier coordinator may
                // have sent it only to some ranks.
                IntStream.range(1, last == null ? 1 : at.size())
                        .filter(to -> at.receive(to, Mail.AGREE.tag(number - 1)) != null
                                || at.receive(to, Mail.SHRINK.tag(number - 1)) != null)
                        .forEach(to -> at.send(to, Mail.DECISION.tag(number - 1), last));
            }
        }
        return present();
    }

    /** Reads the requests that have arrived. Returns the present ranks if all living ranks are present. */
    private @Nullable BitSet all() {
        others().forEach(rank -> {
            byte[] request = at.receive(rank - self, kind.tag(number));
            requests[rank] = request == null ? requests[rank] : Request.decode(rank, request);
        });
        BitSet present = present();
        return present.equals(living) ? present : null;
    }

    private IntStream others() {
        return IntStream.of(living.stream().filter(rank -> rank != self).toArray());
    }

    /**
     * Returns the proposal for the present ranks. If some of them have accepted a proposal, the accepted proposal of
     * the highest earlier coordinator is returned. If none has, a new proposal is returned.
     *
     * @param members all ranks that take part in the decision
     * @param origins number of each rank in the first group
     */
    byte[] proposal(BitSet present, BitSet members, int[] origins) {
        List<Request> asked = present.stream().mapToObj(rank -> requests[rank]).toList();
        Request latest = asked.stream().max(Comparator.comparingInt(Request::ballot)).orElseThrow();
        if (latest.ballot() >= 0) {
            return latest.proposal();
        }
        // The flags of `agree` count only if all requests are for the same call. The flags of `shrink` count only if
        // all members have asked.
        boolean counts = kind == Mail.SHRINK ? present.equals(members)
                : asked.stream().map(Request::call).distinct().count() == 1;
        return new Decision(kind, counts && asked.stream().allMatch(Request::flag),
                asked.stream().mapToInt(Request::call).max().orElseThrow(),
                present.stream().map(rank -> origins[rank]).collect(BitSet::new, BitSet::set, BitSet::or)).encode();
    }
}
