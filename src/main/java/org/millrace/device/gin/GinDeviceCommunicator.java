package org.millrace.device.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;

/**
 * A rank's communicator for blocks of the emulated device: contexts, teams and barriers, as in {@code ncclDevComm}. All
 * ranks must create it with the same requirements. Safe from any thread.
 */
public final class GinDeviceCommunicator implements AutoCloseable {

    private final GinCommunicator communicator;
    private final GinRequirements requirements;
    private final Arena arena = Arena.ofShared();
    private final HostGinContext[] contexts;
    /**
     * Epoch of each barrier in each context. The epoch is the expected value of the barrier's signal. World barriers
     * come first, then rail barriers. Only one block at a time uses a barrier.
     */
    private final int[] epochs;
    private final AtomicBoolean closed = new AtomicBoolean();
    /**
     * Number of signals that users have reserved so far in each context. The reserved signals have the lowest numbers.
     */
    private int takenSignals;

    /**
     * Creates the contexts and adds them to the communicator's agent. A communicator of GIN can have several objects of
     * this class. All ranks must create and close them in the same order, because new contexts receive the lowest free
     * numbers.
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

    /** Returns the team of all ranks. */
    public GinTeam world() {
        return new GinTeam(rank(), communicator.ranks(), 1);
    }

    /** Returns the team of this rank and the ranks near it: {@code lsaSize} consecutive ranks that share memory. */
    public GinTeam lsa() {
        return new GinTeam(rank() % requirements.lsaSize(), requirements.lsaSize(), 1);
    }

    /**
     * Returns the team of this rank's rail: the ranks that have the same index as this rank within their teams of near
     * ranks.
     */
    public GinTeam rail() {
        return new GinTeam(rank() / requirements.lsaSize(), communicator.ranks() / requirements.lsaSize(),
                requirements.lsaSize());
    }

    /** Returns the struct of a context ({@code ncclGinProxyGpuCtx_t}) that a GPU kernel would receive. */
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
     * Removes the contexts from the agent and frees their memory. Blocks must no longer use the contexts.
     *
     * @throws GinException if the agent does not release a context; the memory is then not freed
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
