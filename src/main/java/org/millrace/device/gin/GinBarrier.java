package org.millrace.device.gin;

/**
 * A barrier of a team, by signals: {@code ncclGinBarrierSession}. When it returns, every member has arrived. Earlier
 * puts of the members may still be in flight, as with NCCL's relaxed fence level. Where their arrival matters, puts
 * carry signals. In a context, one block of each rank at a time uses a barrier's number.
 */
public final class GinBarrier {

    /** Number of bits of a barrier's epoch, and of the signal's bits that count. */
    private static final int EPOCH_BITS = Integer.SIZE;

    private final HostGin gin;
    private final GinTeam team;
    private final int barrier;
    private final RemoteAction arrival;

    private GinBarrier(HostGin gin, GinTeam team, int barrier) {
        this.gin = gin;
        this.team = team;
        this.barrier = barrier;
        this.arrival = RemoteAction.increment(gin.communicator().barrierSignal(barrier));
    }

    /** Returns a barrier of all ranks. */
    public static GinBarrier world(HostGin gin, int number) {
        GinRequirements requirements = gin.communicator().requirements();
        return new GinBarrier(gin, gin.communicator().world(), checked(number, requirements.worldBarriers(), "world"));
    }

    /** Returns a barrier of this rank's rail. */
    public static GinBarrier rail(HostGin gin, int number) {
        GinRequirements requirements = gin.communicator().requirements();
        return new GinBarrier(gin, gin.communicator().rail(),
                requirements.worldBarriers() + checked(number, requirements.railBarriers(), "rail"));
    }

    private static int checked(int number, int count, String kind) {
        if (number < 0 || number >= count) {
            throw new IndexOutOfBoundsException(kind + " barrier " + number + ": the requirements ask for " + count);
        }
        return number;
    }

    /** Returns when all members have called it as often as this one. */
    public void sync() {
        for (int i = 1; i < team.ranks(); i++) {
            gin.signal(team, (team.rank() + i) % team.ranks(), arrival);
        }
        int epoch = gin.communicator().epoch(barrier, gin.context()) + team.ranks() - 1;
        gin.communicator().epoch(barrier, gin.context(), epoch);
        gin.waitSignal(arrival.signal(), epoch, EPOCH_BITS);
    }
}
