package org.millrace.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.proxy.MemoryFrames;

/**
 * Two ranks in one thread. The test runs their agents. A random generator decides after how many passes a frame
 * arrives.
 */
final class GinPair implements AutoCloseable {

    /** A context of an agent, with the kernel's view of its queues, counters and signals. */
    static final class Context {
        final GinContext agentSide;
        final GinQueueMemory queues;
        /** Consumer indices, which the agent stores and the kernel reads. */
        GinIndices cis;
        final GinCells counters;
        final GinCells signals;
        final int[] pis;
        final long[] words = new long[GinDescriptorFormat.MAX_WORDS];

        Context(Arena arena, int number, GinDescriptorFormat format, int queueSize, int cells, int first) {
            this(arena, number, format, queueSize, arena.allocate(8L * cells, 64), first);
        }

        Context(Arena arena, int number, GinDescriptorFormat format, int queueSize, MemorySegment signalBytes,
                int first) {
            MemorySegment cisBytes = arena.allocate(8, 64);
            MemorySegment counterBytes = arena.allocate(signalBytes.byteSize(), 64);
            queues = GinQueueMemory.of(arena.allocate(GinQueueMemory.bytes(format, 2, queueSize), 64), format, 2,
                    queueSize);
            cis = GinIndices.of(cisBytes, 2);
            pis = new int[] {first, first};
            cis.release(0, first);
            cis.release(1, first);
            counters = GinCells.of(counterBytes);
            signals = GinCells.of(signalBytes);
            agentSide = new GinContext(number, queues, cisBytes, counterBytes, signalBytes, 2);
        }

        boolean hasRoom(int peer) {
            return pis[peer] - cis.acquire(peer) < queues.queueSize();
        }

        /** Posts {@link #words}. Returns the index of the descriptor. */
        int post(int peer) {
            queues.storeOpaque(queues.at(peer, pis[peer]), words);
            return pis[peer]++;
        }
    }

    final Arena arena = Arena.ofConfined();
    final MemoryFrames forth;
    final MemoryFrames back;
    final GinCommunicator[] communicators = new GinCommunicator[2];
    private final SignalMemory[] shared = new SignalMemory[2];
    /** Actions that end the service of a context and the context's trace. */
    private final List<Runnable> removals = new ArrayList<>();
    final GinAgent[] agents = {new GinAgent("rank 0"), new GinAgent("rank 1")};

    /** Stalls that the communicators have reported. */
    final List<String> stalls = new ArrayList<>();

    GinPair(GinOptions options, RandomGenerator random) {
        GinCommunicator.FailureListener listener = new GinCommunicator.FailureListener() {
            @Override
            public void failed(Throwable failure) {
                // ignored, because GinCommunicator.failure() also returns this failure
            }

            @Override
            public void stalled(String what) {
                stalls.add(what);
            }
        };
        forth = new MemoryFrames(random);
        back = new MemoryFrames(random);
        communicators[0] = new GinCommunicator(0, 0, new FrameSender[] {null, forth.sender()},
                new FrameReceiver[] {null, back.receiver()}, options, listener);
        communicators[1] = new GinCommunicator(0, 1, new FrameSender[] {back.sender(), null},
                new FrameReceiver[] {forth.receiver(), null}, options, listener);
    }

    /** Adds both communicators to their agents. */
    void serve() {
        for (int rank = 0; rank < 2; rank++) {
            agents[rank].add(communicators[rank]);
        }
    }

    /**
     * Creates a staging ring for each direction. The positions of the rings begin at {@code first}. Must be called
     * before {@link #serve}.
     */
    StagingRing[] stage(long capacity, long first) {
        StagingRing[] rings = new StagingRing[2];
        for (int from = 0; from < 2; from++) {
            MemorySegment memory = arena.allocate(StagingRing.bytes(capacity), 64);
            memory.set(ValueLayout.JAVA_LONG, 0, first);
            rings[from] = new StagingRing(memory, memory.address());
            int to = 1 - from;
            communicators[to].stageIn(from, rings[from]);
            communicators[from].stageOut(to, new StagingRing(memory, memory.address()));
        }
        return rings;
    }

    /**
     * Places the signals of both ranks' contexts in memory that the peer maps. Must be called before {@link #serve}.
     */
    void shareSignals(int contexts, int cells) {
        for (int rank = 0; rank < 2; rank++) {
            shared[rank] = new SignalMemory(arena.allocate(SignalMemory.bytes(2, contexts, cells), 128), 2, cells);
            communicators[rank].share(shared[rank]);
        }
    }

    /** Returns a context that is not served yet. */
    Context newContext(int rank, int number, GinDescriptorFormat format, int queueSize, int cells, int first) {
        if (shared[rank] == null) {
            return new Context(arena, number, format, queueSize, cells, first);
        }
        Context context = new Context(arena, number, format, queueSize, shared[rank].signals(number), first);
        context.agentSide.reach(1 - rank, shared[1 - rank].toward(number, rank));
        return context;
    }

    /** Adds a context to a rank. {@link #close} removes the context. */
    void add(int rank, Context context) {
        communicators[rank].add(context.agentSide);
        removals.add(() -> remove(communicators[rank], context));
    }

    /** Removes a context of a communicator whose agent makes no more passes. */
    static void remove(GinCommunicator communicator, Context context) {
        communicator.servedBy(null);
        communicator.remove(context.agentSide);
    }

    int work() {
        return agents[0].doWork() + agents[1].doWork();
    }

    void throwIfFailed() {
        communicators[0].throwIfFailed();
        communicators[1].throwIfFailed();
    }

    @Override
    public void close() {
        removals.forEach(Runnable::run);
        arena.close();
    }
}
