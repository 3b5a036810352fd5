package org.millrace.nccl;

import org.jspecify.annotations.Nullable;

/** Results of NCCL's functions, in the order of {@code ncclResult_t}. */
public enum NcclResult {
    /** The call succeeded. */
    SUCCESS("ncclSuccess", ""),
    /** A CUDA call failed. */
    UNHANDLED_CUDA_ERROR("ncclUnhandledCudaError",
            "A CUDA call failed inside NCCL: see that nvidia-smi works and that the driver serves the CUDA that NCCL"
                    + " was built for;" + " NCCL_DEBUG=WARN names the call"),
    /** A call of the operating system failed. */
    SYSTEM_ERROR("ncclSystemError",
            "A call of the operating system failed: see that the ranks reach each other on the interface NCCL chose"
                    + " (NCCL_SOCKET_IFNAME picks another), that"
                    + " /dev/shm is large enough, and the limits on open files and locked memory; NCCL_DEBUG=WARN"
                    + " names the call"),
    /** NCCL found an internal error, or memory was corrupted. */
    INTERNAL_ERROR("ncclInternalError",
            "NCCL met a state it does not expect, often a plugin or a mismatch between ranks: compare NCCL_DEBUG=INFO"
                    + " of all ranks"),
    /** The program passed a wrong argument. */
    INVALID_ARGUMENT("ncclInvalidArgument",
            "An argument is wrong, or the communicator is gone: NCCL_DEBUG=WARN says which"),
    /** The program made a call that is not allowed in this state, or the calls of ranks differ. */
    INVALID_USAGE("ncclInvalidUsage",
            "The calls do not fit together: two ranks on one GPU, a group left open, a communicator that is still"
                    + " being made, or an option that this NCCL does" + " not have; NCCL_DEBUG=WARN says which"),
    /** Another rank failed or ended. */
    REMOTE_ERROR("ncclRemoteError",
            "Another rank failed or the network between was cut: look for the first error among the ranks, and abort"
                    + " this communicator"),
    /** The call is not complete yet. This result is no error. */
    IN_PROGRESS("ncclInProgress", "Wait for the communicator before the next call on it"),
    /** An event did not occur within NCCL's time limit. Since NCCL 2.30. */
    TIMEOUT("ncclTimeout", "NCCL timed out: look for the rank that is missing or stalled, and abort this communicator");

    private static final NcclResult[] BY_CODE = values();

    private final String symbol;
    private final String advice;

    NcclResult(String symbol, String advice) {
        this.symbol = symbol;
        this.advice = advice;
    }

    /** {@return the result's name in {@code nccl.h}, for instance {@code "ncclSystemError"}} */
    public String symbol() {
        return symbol;
    }

    /** {@return the result's number in {@code ncclResult_t}: 0 for {@link #SUCCESS}} */
    public int code() {
        return ordinal();
    }

    /** Returns the remedy for this error; empty if this result is no error. */
    String advice() {
        return advice;
    }

    /** {@return the result with a number in {@code ncclResult_t}; null if NCCL 2.30 has no such result} */
    public static @Nullable NcclResult ofCode(int code) {
        return code >= 0 && code < BY_CODE.length ? BY_CODE[code] : null;
    }
}
