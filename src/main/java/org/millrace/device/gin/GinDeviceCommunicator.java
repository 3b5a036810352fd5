package org.millrace.device.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;

/**
 * What the blocks of a rank know of a communicator: its contexts, its teams and its barriers, as {@code ncclDevComm}.
 * Made by all ranks with the same requirements. Safe from any thread.
 */
public final class GinDeviceCommunicator implements AutoCloseable {

    private final GinCommunicator communicator;
    private final GinRequirements requirements;
    private final Arena arena = Arena.ofShared();
    private final HostGinContext[] contexts;
    /** How far each barrier has come, by kind, number and context; a barrier is used by one block at a time. */
    private final int[] epochs;
    private final AtomicBoolean closed = new AtomicBoolean();
    /** Signals of each context that have a user: the first ones. */
    private int takenSignals;

    /**
     * Makes the contexts and lets the communicator's agent serve them. There may be several of one communicator; all
     * ranks make and close them in the same order, as the contexts get the lowest numbers that are free.
     *
     * @param requirements the same on every rank
     */
    public GinDeviceCommunicator(GinCommunicator communicator, GinRequirements requirements) {
        if (requirements.lsaSize() < 1 || communicator.ranks() % requirements.lsaSize() != 0) {
            throw new IllegalArgumentException(
                    communicator.ranks() + " ranks cannot be divided into parts of " + requirements.lsaSize());
        }
        if (requirements.allSignals() > requirements.format().maxSignals()
                || requirements.counters() > requirements.format().maxCounters()) {
            throw new IllegalArgumentException("a descriptor of " + requirements.format() + " can name "
                    + requirements.format().maxSignals() + " signals and " + requirements.format().maxCounters()
                    + " counters of a context, not " + requirements.allSignals() + " and " + requirements.counters());
        }
        this.communicator = communicator;
        this.requirements = requirements;
        contexts = new HostGinContext[requirements.contexts()];
        int first = communicator.freeContexts(contexts.length);
        for (int number = 0; number < contexts.length; number++) {
            contexts[number] = new HostGinContext(arena, first + number, communicator.ranks(), requirements);
            communicator.add(contexts[number].agentSide());
        }
        epochs = new int[(requirements.worldBarriers() + requirements.railBarriers()) * contexts.length];
    }

    public GinCommunicator communicator() {
        return communicator;
    }

    public GinRequirements requirements() {
        return requirements;
    }

    public int rank() {
        return communicator.rank();
    }

    public int contexts() {
        return contexts.length;
    }

    /** All ranks. */
    public GinTeam world() {
        return new GinTeam(rank(), communicator.ranks(), 1);
    }

    /** The ranks near this one. */
    public GinTeam lsa() {
        return new GinTeam(rank() % requirements.lsaSize(), requirements.lsaSize(), 1);
    }

    /** The ranks that have this one's number among those near them. */
    public GinTeam rail() {
        return new GinTeam(rank() / requirements.lsaSize(), communicator.ranks() / requirements.lsaSize(),
                requirements.lsaSize());
    }

    /** The struct that a kernel would be given. */
    public MemorySegment gpuContext(int context) {
        return contexts[context].gpuContext;
    }

    HostGinContext context(int number) {
        return contexts[number];
    }

    synchronized int takeSignals(int count) {
        if (count > requirements.signals() - takenSignals) {
            throw new IllegalArgumentException(count + " signals more than the " + takenSignals
                    + " that are taken: the device communicator was required with " + requirements.signals());
        }
        takenSignals += count;
        return takenSignals - count;
    }

    int barrierSignal(int barrier) {
        return requirements.signals() + barrier;
    }

    int epoch(int barrier, int context) {
        return epochs[barrier * contexts.length + context];
    }

    void epoch(int barrier, int context, int epoch) {
        epochs[barrier * contexts.length + context] = epoch;
    }

    /**
     * Takes the contexts from the agent and frees them. No block may use them any more.
     *
     * @throws GinException if the agent does not let go: the memory is left alone
     */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            for (HostGinContext context : contexts) {
                communicator.remove(context.agentSide());
            }
            arena.close();
        }
    }
}
