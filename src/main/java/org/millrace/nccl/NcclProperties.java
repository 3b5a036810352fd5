package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.nccl.ncclCommProperties_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * What NCCL tells of a communicator: {@link NcclCommunicator#properties()}. NCCL 2.29.7.
 *
 * @param cudaDevice      the number that CUDA gives this rank's GPU in this process
 * @param managedDevice   the number that NVIDIA's management library gives it
 * @param deviceFunctions whether kernels can use NCCL's device functions
 * @param multicast       whether they can use the NVLink switch's multicast
 * @param gin             how puts of kernels are carried out; null for a way that these bindings do not know
 * @param railGin         how they are to ranks of the same rail
 * @param memoryTeams     in how many teams the ranks fall that reach each other's memory
 * @param hostPuts        whether {@linkplain NcclCommunicator#putSignal puts and signals} that the host enqueues work
 */
public record NcclProperties(int rank, int size, int cudaDevice, int managedDevice, boolean deviceFunctions,
        boolean multicast, @Nullable Gin gin, @Nullable Gin railGin, int memoryTeams, boolean hostPuts) {

    /** The struct's fields behind {@code ginType} are of this release. */
    private static final int SINCE = 22907;

    /** How puts of kernels are carried out. */
    public enum Gin {
        /** Not at all. */
        NONE(nccl_h.NCCL_GIN_TYPE_NONE()),
        /** By a CPU's thread. */
        PROXY(nccl_h.NCCL_GIN_TYPE_PROXY()),
        /** By kernels and cards alone, GPUDirect Async. */
        GDAKI(nccl_h.NCCL_GIN_TYPE_GDAKI()),
        /** As {@code NCCL_GIN_TYPE_GPI} of NCCL 2.30.7 says. */
        GPI(nccl_h.NCCL_GIN_TYPE_GPI());

        private final int code;

        Gin(int code) {
            this.code = code;
        }

        static @Nullable Gin ofCode(int code) {
            for (Gin each : values()) {
                if (each.code == code) {
                    return each;
                }
            }
            return null;
        }
    }

    static NcclProperties of(NcclCommunicator communicator) {
        NcclLibrary library = communicator.library;
        library.require(NcclFunction.COMM_QUERY_PROPERTIES);
        library.requireVersion("what ncclCommQueryProperties tells", SINCE);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = ncclCommProperties_t.allocate(arena);
            ncclCommProperties_t.size(out, ncclCommProperties_t.sizeof());
            ncclCommProperties_t.magic(out, nccl_h.MILLRACE_NCCL_CONFIG_MAGIC());
            // A release refuses those of later headers; the struct is the same since.
            ncclCommProperties_t.version(out, Math.min(library.version(), nccl_h.NCCL_VERSION_CODE()));
            communicator.enter(NcclFunction.COMM_QUERY_PROPERTIES,
                    handle -> nccl_h.ncclCommQueryProperties(handle, out));
            return new NcclProperties(ncclCommProperties_t.rank(out), ncclCommProperties_t.nRanks(out),
                    ncclCommProperties_t.cudaDev(out), ncclCommProperties_t.nvmlDev(out),
                    ncclCommProperties_t.deviceApiSupport(out), ncclCommProperties_t.multimemSupport(out),
                    Gin.ofCode(ncclCommProperties_t.ginType(out)), Gin.ofCode(ncclCommProperties_t.railedGinType(out)),
                    ncclCommProperties_t.nLsaTeams(out), ncclCommProperties_t.hostRmaSupport(out));
        }
    }
}
