package org.millrace.net.fault;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** A fault that waits for its moment, and happens once whichever connection comes there first. */
final class ArmedFault {

    private final Fault fault;
    private final AtomicLong injected;
    private final AtomicBoolean happened = new AtomicBoolean();

    /**
     * Arms a fault.
     *
     * @param injected counts the faults that happened
     */
    ArmedFault(Fault fault, AtomicLong injected) {
        this.fault = fault;
        this.injected = injected;
    }

    Fault fault() {
        return fault;
    }

    /** Whether this can befall a connection at all. */
    boolean concerns(long connection) {
        return fault.connection() == 0 || fault.connection() == connection;
    }

    /** Whether it has not happened yet and is due at a frame. */
    boolean isDue(Fault.Kind kind, long frame) {
        return fault.kind() == kind && frame >= fault.frame() && !happened.get();
    }

    /** Makes it happen; false if another connection was faster. */
    boolean claim() {
        if (!happened.compareAndSet(false, true)) {
            return false;
        }
        injected.incrementAndGet();
        PlantedFaults.happened(fault);
        return true;
    }
}
