package org.millrace.device.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.gin.GinContext;

/**
 * The memory of a GIN context, in the layout that a GPU and its host share. The fields are the device's view of this
 * memory, and {@link #agentSide} is the agent's view.
 */
final class HostGinContext {

    private static final long PAGE = 4096;

    private final GinContext agentSide;
    final MemorySegment gpuContext;
    final GinQueueMemory queues;
    final GinIndices pis;
    final GinIndices cis;
    final GinCells counters;
    final GinCells signals;
    final GinCells signalOffsets;
    final GinCells shadows;
    final GinIndices lastIssuedGet;
    final GinIndices lastVisibleGet;

    HostGinContext(Arena arena, int number, int ranks, GinRequirements requirements) {
        int size = requirements.queueSize();
        MemorySegment queueBytes = shared(arena, GinQueueMemory.bytes(requirements.format(), ranks, size));
        MemorySegment pisBytes = shared(arena, (long) ranks * Integer.BYTES);
        MemorySegment cisBytes = shared(arena, (long) ranks * Integer.BYTES);
        MemorySegment counterBytes = shared(arena, (long) requirements.counters() * Long.BYTES);
        MemorySegment signalBytes = shared(arena, (long) requirements.allSignals() * Long.BYTES);
        MemorySegment offsetBytes = shared(arena, signalBytes.byteSize());
        MemorySegment issuedBytes = shared(arena, (long) ranks * Integer.BYTES);
        MemorySegment visibleBytes = shared(arena, (long) ranks * Integer.BYTES);
        queues = GinQueueMemory.of(queueBytes, requirements.format(), ranks, size);
        pis = GinIndices.of(pisBytes, ranks);
        cis = GinIndices.of(cisBytes, ranks);
        counters = GinCells.of(counterBytes);
        signals = GinCells.of(signalBytes);
        signalOffsets = GinCells.of(offsetBytes);
        shadows = GinCells.of(shared(arena, signalBytes.byteSize()));
        lastIssuedGet = GinIndices.of(issuedBytes, ranks);
        lastVisibleGet = GinIndices.of(visibleBytes, ranks);
        for (int peer = 0; peer < ranks; peer++) {
            pis.release(peer, requirements.firstIndex());
            cis.release(peer, requirements.firstIndex());
            lastIssuedGet.release(peer, requirements.firstIndex());
            lastVisibleGet.release(peer, requirements.firstIndex());
        }
        gpuContext = shared(arena, requirements.format().contextBytes());
        GinGpuContext struct = GinGpuContext.of(gpuContext);
        struct.set(ranks, size, queueBytes.address(), pisBytes.address(), cisBytes.address(), counterBytes.address(),
                signalBytes.address());
        if (struct.hasSignalOffsets()) {
            struct.setGets(offsetBytes.address(), issuedBytes.address(), visibleBytes.address());
        }
        agentSide = new GinContext(number, queues, cisBytes, counterBytes, signalBytes, ranks);
    }

    /**
     * Allocates memory and returns it as a segment of the global scope, so that an access checks no arena. The memory
     * is freed when the given arena is closed. The caller closes this arena after the agent has released the context.
     */
    @SuppressWarnings("restricted")
    private static MemorySegment shared(Arena arena, long bytes) {
        MemorySegment owned = arena.allocate(Math.max(bytes, Long.BYTES), PAGE);
        return MemorySegment.ofAddress(owned.address()).reinterpret(bytes);
    }

    GinContext agentSide() {
        return agentSide;
    }

    /**
     * Returns whether a reset of a signal stores the signal's value in {@code signalOffsets}. If so, the agent adds to
     * the signal, and no other thread stores to the signal.
     */
    boolean resetsByOffset() {
        return queues.format().resetsByOffset();
    }
}
