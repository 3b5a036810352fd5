package org.millrace.bench.ring;

import java.util.ArrayList;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;

/**
 * Role of the other side of a ring.
 *
 * @param protocol its protocol
 * @param bytes    payload of a step
 * @param ofC      whether C runs it
 */
public record RingRole(RingProtocol protocol, int bytes, boolean ofC) {

    /** All roles. Two processes identify a role by its index in this list. */
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
     * Returns the role's loop.
     *
     * @param ring ring to use
     * @return the loop
     */
    public Loop loop(RingMemory ring) {
        return protocol.proxy(ring, bytes, c());
    }

    /**
     * Returns the matching loop of the device.
     *
     * @param ring   ring to use
     * @param window number of steps in flight
     * @return the loop
     */
    public Loop device(RingMemory ring, int window) {
        return protocol.device(ring, bytes, window, c());
    }

    private CLibrary c() {
        return ofC ? CLibrary.ofThisJvm() : null;
    }
}
