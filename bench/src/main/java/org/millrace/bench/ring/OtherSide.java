package org.millrace.bench.ring;

import org.millrace.bench.measure.Loop;

/** Location of a ring's proxy: on another thread, or in another process. */
public interface OtherSide extends AutoCloseable {

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
     * @param ours the device's loop, or null
     * @param role role of the other side
     * @return both together, null if ours is null
     */
    default Loop with(Loop ours, RingRole role) {
        return ours == null ? null : count -> {
            start(role, count);
            long mine = ours.run(count);
            return await() == Loop.LOST ? Loop.LOST : mine;
        };
    }

    @Override
    void close();
}
