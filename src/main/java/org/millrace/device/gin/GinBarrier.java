package org.millrace.device.gin;

/**
 * A barrier of a team, implemented with signals: {@code ncclGinBarrierSession}. When {@link #sync} returns, every
 * member of the team has called {@link #sync}. Earlier puts of the members may still be in flight, as with NCCL's
 * relaxed fence level. If a program must know that a put has arrived, the put must carry a signal. For each context and
 * barrier number, at most one block of each rank may use the barrier at any time.
 */
public final class GinBarrier {

    /** Number of bits of a barrier's epoch. Only these low bits of the signal are compared with the epoch. */
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

    /**
     * Returns a barrier of all ranks.
     *
     * @param number number of the barrier, less than the number of world barriers in the requirements
     */
    public static GinBarrier world(HostGin gin, int number) {
        GinRequirements requirements = gin.communicator().requirements();
        return new GinBarrier(gin, gin.communicator().world(), checked(number, requirements.worldBarriers(), "world"));
    }

    /**
     * Returns a barrier of this rank's {@linkplain GinDeviceCommunicator#rail rail}.
     *
     * @param number number of the barrier, less than the number of rail barriers in the requirements
     */
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

    /** Waits until all members have called this method as often as this rank. */
    public void sync() {
        for (int i = 1; i < team.ranks(); i++) {
            gin.signal(team, (team.rank() + i) % team.ranks(), arrival);
        }
        int epoch = gin.communicator().epoch(barrier, gin.context()) + team.ranks() - 1;
        gin.communicator().epoch(barrier, gin.context(), epoch);
        gin.waitSignal(arrival.signal(), epoch, EPOCH_BITS);
    }
}
