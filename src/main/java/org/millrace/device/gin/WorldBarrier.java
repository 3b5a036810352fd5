package org.millrace.device.gin;

/**
 * A barrier of all ranks in two steps, {@code ncclBarrierSession}. First the ranks near each other meet by stores, then
 * the ranks of each rail meet by signals. After it, a rank sees everything that ranks near it stored before. Puts of
 * other ranks may still be in flight, as with {@link GinBarrier}. One block of each rank at a time uses it.
 */
public final class WorldBarrier {

    private final HostGin gin;
    private final LsaMemory near;
    private final long offset;
    private final GinBarrier rail;
    private long arrivals;

    /**
     * Creates a barrier. All ranks must create it.
     *
     * @param near   ranks near this one
     * @param offset offset of 8 bytes of every rank's window that are 0 and that only this barrier uses
     * @param number number of the rail's barrier
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
