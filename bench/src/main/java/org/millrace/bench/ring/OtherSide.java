package org.millrace.bench.ring;

import org.millrace.bench.measure.Loop;

/** Where a ring's proxy runs: on another thread, or in another process. */
public interface OtherSide extends AutoCloseable {

    /**
     * Begins a role there.
     *
     * @param role  one of {@link RingRole#ALL}
     * @param count steps
     */
    void start(RingRole role, long count);

    /**
     * Waits for its end.
     *
     * @return what the role's loop returned
     */
    long await();

    /**
     * A loop of both sides.
     *
     * @param ours the device's loop, or null
     * @param role what the other side does
     * @return both together; null if ours is
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
