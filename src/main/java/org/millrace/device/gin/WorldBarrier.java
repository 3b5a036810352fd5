package org.millrace.device.gin;

/**
 * A barrier of all ranks in two steps, {@code ncclBarrierSession}: those near each other meet by stores, then those of
 * each rail by signals. Behind it a rank finds what ranks near it stored before; what others put may still be on its
 * way, as with {@link GinBarrier}. One block of each rank at a time uses it.
 */
public final class WorldBarrier {

    private final HostGin gin;
    private final LsaMemory near;
    private final long offset;
    private final GinBarrier rail;
    private long arrivals;

    /**
     * A barrier, to be made by all ranks.
     *
     * @param near   the ranks near this one
     * @param offset of 8 bytes of every rank's window that only this barrier uses, and that are 0
     * @param number of the rail's barrier
     */
    public WorldBarrier(HostGin gin, LsaMemory near, long offset, int number) {
        this.gin = gin;
        this.near = near;
        this.offset = offset;
        this.rail = GinBarrier.rail(gin, number);
    }

    /** Returns when all ranks have called it as often as this one. */
    public void sync() {
        for (int peer = 0; peer < near.ranks(); peer++) {
            near.addRelease(peer, offset, 1);
        }
        arrivals += near.ranks();
        gin.waitUntil("ranks near it to come to a barrier", () -> near.acquire(near.self(), offset) - arrivals >= 0);
        rail.sync();
    }
}
