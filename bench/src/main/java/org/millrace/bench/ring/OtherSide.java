package org.millrace.bench.ring;

import java.io.IOException;
import java.lang.foreign.Arena;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;

/** Location of a ring's proxy: on another thread, or in another process. */
public interface OtherSide extends AutoCloseable {

    /**
     * Starts another side.
     *
     * @param where {@code threads} or {@code processes}
     * @return the side, ready
     * @throws IOException if it does not start
     */
    static OtherSide of(String where) throws IOException {
        if (!Cores.ofThisProcess().two()) {
            throw new IllegalStateException("with one core, each step would cost two time slices of the scheduler");
        }
        return where.equals("processes") ? OtherProcess.start()
                : new RingThread(new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096)));
    }

    /** {@return the ring between the two sides} */
    RingMemory ring();

    /**
     * Starts a role on the other side.
     *
     * @param role  one of {@link RingRole#ALL}
     * @param count number of steps
     */
    void start(RingRole role, long count);

    /**
     * Waits until the role has ended.
     *
     * @return result of the role's loop
     */
    long await();

    /**
     * Returns a loop of both sides.
     *
     * @param ours the device's loop
     * @param role role of the other side
     * @return both together
     */
    default Loop with(Loop ours, RingRole role) {
        return count -> {
            start(role, count);
            long mine = ours.run(count);
            return await() == Loop.LOST ? Loop.LOST : mine;
        };
    }

    @Override
    void close();
}
