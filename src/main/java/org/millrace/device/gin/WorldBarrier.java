package org.millrace.device.gin;

/**
 * A barrier of all ranks in two steps: {@code ncclBarrierSession}. In the first step, near ranks wait for each other
 * through shared memory. In the second step, the ranks of each rail wait for each other through signals. After the
 * barrier, a rank sees all earlier stores of near ranks. Puts of other ranks may still be in flight, as after a
 * {@link GinBarrier}. Only one block of each rank may use the barrier at a time.
 */
public final class WorldBarrier {

    private final HostGin gin;
    private final LsaMemory near;
    private final long offset;
    private final GinBarrier rail;
    private long arrivals;

    /**
     * Creates a barrier. All ranks must create it with the same arguments.
     *
     * @param near   memory of the ranks near this rank
     * @param offset offset of 8 bytes in the window of every rank; these bytes are 0 at first, and only this barrier
     *               uses them
     * @param number number of the rail barrier for the second step
     */
    public WorldBarrier(HostGin gin, LsaMemory near, long offset, int number) {
        this.gin = gin;
        this.near = near;
        this.offset = offset;
        this.rail = GinBarrier.rail(gin, number);
    }

    /** Waits until all ranks have called this method as often as this rank. */
    public void sync() {
        for (int peer = 0; peer < near.ranks(); peer++) {
            near.addRelease(peer, offset, 1);
        }
        arrivals += near.ranks();
        gin.waitUntil("near ranks to reach a barrier", () -> near.acquire(near.self(), offset) - arrivals >= 0);
        rail.sync();
    }
}
