package org.millrace.device.gin;

/**
 * A barrier of a team, by signals: {@code ncclGinBarrierSession}. Every member has come when it returns; what members
 * put before may still be on its way, as NCCL's relaxed fence level leaves it. Where that matters, puts carry signals.
 * One block of each rank at a time uses a barrier's number in a context.
 */
public final class GinBarrier {

    /** A barrier's epoch has 32 bits, and so have the signal's that count. */
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

    /** A barrier of all ranks. */
    public static GinBarrier world(HostGin gin, int number) {
        GinRequirements requirements = gin.communicator().requirements();
        return new GinBarrier(gin, gin.communicator().world(), checked(number, requirements.worldBarriers(), "world"));
    }

    /** A barrier of this rank's rail. */
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
