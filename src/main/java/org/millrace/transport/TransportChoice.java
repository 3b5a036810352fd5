package org.millrace.transport;

import java.util.ArrayList;
import java.util.List;
import org.millrace.MillraceException;

/**
 * Which transport two ranks use, and why none before it.
 *
 * @param transport the first one that can connect them
 * @param refusals  what was asked before, each with its reason
 */
record TransportChoice(Transport transport, List<String> refusals) {

    /**
     * Asks one transport after another. Both ranks come to the same choice, as each offer is known to both.
     *
     * @throws MillraceException if none can connect them; the message says why of each
     */
    static TransportChoice of(List<? extends Transport> transports, PeerInfo here, PeerInfo there) {
        List<String> refusals = new ArrayList<>();
        for (Transport transport : transports) {
            Availability availability = ask(transport, here, there);
            if (availability.yes()) {
                return new TransportChoice(transport, List.copyOf(refusals));
            }
            refusals.add(transport.name() + ": " + availability.text());
        }
        throw new MillraceException("no transport connects rank " + here.rank() + " and rank " + there.rank() + ": "
                + String.join("; ", refusals));
    }

    private static Availability ask(Transport transport, PeerInfo here, PeerInfo there) {
        Availability mine = here.offer(transport.name());
        Availability theirs = there.offer(transport.name());
        if (!mine.yes()) {
            return mine;
        }
        return theirs.yes() ? transport.canConnect(here, there)
                : Availability.no("rank " + there.rank() + ": " + theirs.text());
    }

    @Override
    public String toString() {
        return refusals.isEmpty() ? transport.name() : transport.name() + " (" + String.join("; ", refusals) + ")";
    }
}
