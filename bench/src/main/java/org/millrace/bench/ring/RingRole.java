package org.millrace.bench.ring;

import java.util.ArrayList;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;

/**
 * What the other side of a ring does.
 *
 * @param protocol its protocol
 * @param bytes    payload of a step
 * @param ofC      whether C does it
 */
public record RingRole(RingProtocol protocol, int bytes, boolean ofC) {

    /** All of them: their places in this list are their names between two processes. */
    public static final List<RingRole> ALL = all();

    private static List<RingRole> all() {
        List<RingRole> all = new ArrayList<>();
        for (boolean ofC : new boolean[] {false, true}) {
            all.add(new RingRole(RingProtocol.SIMPLE, 0, ofC));
            for (RingProtocol protocol : RingProtocol.values()) {
                all.add(new RingRole(protocol, RingMemory.PAYLOAD_BYTES, ofC));
            }
        }
        return List.copyOf(all);
    }

    /**
     * The role's loop.
     *
     * @param ring where
     * @param c    the comparators
     * @return the loop; null for a role of C's without comparators
     */
    public Loop loop(RingMemory ring, CLibrary c) {
        return ofC && !c.isPresent() ? null : protocol.proxy(ring, bytes, ofC ? c : null);
    }

    /**
     * The device's loop that goes with it.
     *
     * @param ring   where
     * @param window steps under way
     * @param c      the comparators
     * @return the loop; null for a role of C's without comparators
     */
    public Loop device(RingMemory ring, int window, CLibrary c) {
        return ofC && !c.isPresent() ? null : protocol.device(ring, bytes, window, ofC ? c : null);
    }
}
