package org.millrace.plugin;

import org.millrace.ffi.nccl.nccl_h;
import org.millrace.net.ConnectionException;

/** NCCL's result codes, and which of them stands for which failure. */
final class NcclResult {

    static final int SUCCESS = nccl_h.ncclSuccess();
    static final int INTERNAL_ERROR = nccl_h.ncclInternalError();
    static final int INVALID_ARGUMENT = nccl_h.ncclInvalidArgument();
    static final int INVALID_USAGE = nccl_h.ncclInvalidUsage();
    static final int REMOTE_ERROR = nccl_h.ncclRemoteError();

    private NcclResult() {}

    /** The code that tells NCCL of a failure. */
    static int of(Throwable failure) {
        return switch (failure) {
            case ConnectionException lost -> REMOTE_ERROR;
            case SettingException wrong -> INVALID_USAGE;
            case IllegalArgumentException wrong -> INVALID_ARGUMENT;
            default -> INTERNAL_ERROR;
        };
    }
}
