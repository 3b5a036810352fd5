package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.CollectiveWork;

/** A collective of a plan. Each run of it is an operation of its own, with a number of its own. */
final class PlannedCollective implements Runnable {

    private final Collectives collectives;
    private final int function;
    private final CollectiveWork work;
    private final long signature;
    private final long count;
    private final MemorySegment send;
    private final MemorySegment receive;
    private final UserRegions regions;
    /**
     * Of the latest run. The device's thread reads it for messages, and got the kernel by a queue behind this write.
     */
    private Identity latest;

    PlannedCollective(Collectives collectives, int function, CollectiveWork work, long signature, long count,
            MemorySegment send, MemorySegment receive, UserRegions regions) {
        this.collectives = collectives;
        this.function = function;
        this.work = work;
        this.signature = signature;
        this.count = count;
        this.send = send;
        this.receive = receive;
        this.regions = regions;
    }

    /** Number of its device function. */
    int function() {
        return function;
    }

    CollectiveWork work() {
        return work;
    }

    /** What the ranks must agree on. */
    long signature() {
        return signature;
    }

    /** Elements, as the program said. */
    long count() {
        return count;
    }

    /** Null where it is not looked at. */
    MemorySegment send() {
        return send;
    }

    /** Null where it is not looked at. */
    MemorySegment receive() {
        return receive;
    }

    /** Memory that it uses in place. */
    UserRegions regions() {
        return regions;
    }

    /** Announces a run. */
    @Override
    public void run() {
        latest = collectives.announce(this);
    }

    @Override
    public String toString() {
        return String.valueOf(latest);
    }
}
