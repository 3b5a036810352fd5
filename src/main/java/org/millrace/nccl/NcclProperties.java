package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.nccl.ncclCommProperties_t;
import org.millrace.ffi.nccl.nccl_h;

/**
 * Properties that NCCL reports for a communicator: {@link NcclCommunicator#properties()}. Requires NCCL 2.29.7.
 *
 * @param cudaDevice      CUDA's number of this rank's GPU in this process
 * @param managedDevice   number of this rank's GPU in NVIDIA's management library (NVML)
 * @param deviceFunctions whether kernels can use NCCL's device functions
 * @param multicast       whether kernels can use the multicast of the NVLink switch
 * @param gin             implementation of the puts that kernels start; null if these bindings do not know the
 *                        implementation
 * @param railGin         implementation of the kernels' puts to ranks of the same rail
 * @param memoryTeams     number of teams of ranks that can access each other's memory
 * @param hostPuts        whether the host can enqueue {@linkplain NcclCommunicator#putSignal puts and signals}
 */
public record NcclProperties(int rank, int size, int cudaDevice, int managedDevice, boolean deviceFunctions,
        boolean multicast, @Nullable Gin gin, @Nullable Gin railGin, int memoryTeams, boolean hostPuts) {

    /** First release that has the fields after {@code ginType} in NCCL's struct. */
    private static final int SINCE = 22907;

    /** Implementations of the puts that kernels start (GIN). */
    public enum Gin {
        /** Kernels cannot start puts. */
        NONE(nccl_h.NCCL_GIN_TYPE_NONE()),
        /** A CPU thread sends the data of the puts. */
        PROXY(nccl_h.NCCL_GIN_TYPE_PROXY()),
        /** Kernels drive the network cards without a CPU thread (GPUDirect Async). */
        GDAKI(nccl_h.NCCL_GIN_TYPE_GDAKI()),
        /** Type {@code NCCL_GIN_TYPE_GPI} of NCCL 2.30.7. */
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
            // NCCL refuses a struct with a version newer than the loaded release. If the headers are newer, the version
            // of the release suffices, because all releases since SINCE have the same fields in the struct.
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
