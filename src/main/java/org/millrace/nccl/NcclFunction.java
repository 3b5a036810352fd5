package org.millrace.nccl;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.library.NativeLibrary;

/**
 * Public functions of NCCL that Millrace calls. The release that is noted at a function is the first public release
 * that contains the function (source: src/nccl.h.in at the tags of NCCL's releases).
 */
enum NcclFunction implements NativeLibrary.NativeFunction {
    GET_VERSION("ncclGetVersion"),
    GET_UNIQUE_ID("ncclGetUniqueId"),
    GET_ERROR_STRING("ncclGetErrorString"),
    GET_LAST_ERROR("ncclGetLastError", "2.13"),
    COMM_INIT_RANK("ncclCommInitRank"),
    COMM_INIT_RANK_CONFIG("ncclCommInitRankConfig", "2.14"),
    COMM_INIT_RANK_SCALABLE("ncclCommInitRankScalable", "2.23"),
    COMM_INIT_ALL("ncclCommInitAll"),
    COMM_SPLIT("ncclCommSplit", "2.18"),
    COMM_SHRINK("ncclCommShrink", "2.27"),
    COMM_GET_UNIQUE_ID("ncclCommGetUniqueId", "2.29"),
    COMM_GROW("ncclCommGrow", "2.29"),
    COMM_REVOKE("ncclCommRevoke", "2.28.7"),
    COMM_SUSPEND("ncclCommSuspend", "2.29.7"),
    COMM_RESUME("ncclCommResume", "2.29.7"),
    COMM_MEM_STATS("ncclCommMemStats", "2.29.7"),
    COMM_FINALIZE("ncclCommFinalize", "2.14"),
    COMM_DESTROY("ncclCommDestroy"),
    COMM_ABORT("ncclCommAbort"),
    COMM_GET_ASYNC_ERROR("ncclCommGetAsyncError"),
    COMM_COUNT("ncclCommCount"),
    COMM_CU_DEVICE("ncclCommCuDevice"),
    COMM_USER_RANK("ncclCommUserRank"),
    COMM_QUERY_PROPERTIES("ncclCommQueryProperties", "2.29"),
    MEM_ALLOC("ncclMemAlloc", "2.19"),
    MEM_FREE("ncclMemFree", "2.19"),
    COMM_REGISTER("ncclCommRegister", "2.19"),
    COMM_DEREGISTER("ncclCommDeregister", "2.19"),
    COMM_WINDOW_REGISTER("ncclCommWindowRegister", "2.27"),
    COMM_WINDOW_DEREGISTER("ncclCommWindowDeregister", "2.27"),
    WIN_GET_USER_PTR("ncclWinGetUserPtr", "2.29"),
    DEV_COMM_CREATE("ncclDevCommCreate", "2.28"),
    DEV_COMM_DESTROY("ncclDevCommDestroy", "2.28"),
    RED_OP_CREATE_PRE_MUL_SUM("ncclRedOpCreatePreMulSum", "2.11"),
    RED_OP_DESTROY("ncclRedOpDestroy", "2.11"),
    REDUCE(Operation.REDUCE),
    BROADCAST(Operation.BROADCAST),
    ALL_REDUCE(Operation.ALL_REDUCE),
    REDUCE_SCATTER(Operation.REDUCE_SCATTER),
    ALL_GATHER(Operation.ALL_GATHER),
    ALL_TO_ALL(Operation.ALL_TO_ALL, "2.28"),
    GATHER(Operation.GATHER, "2.28"),
    SCATTER(Operation.SCATTER, "2.28"),
    SEND("ncclSend", "2.7"),
    RECV("ncclRecv", "2.7"),
    PUT_SIGNAL("ncclPutSignal", "2.29"),
    SIGNAL("ncclSignal", "2.29"),
    WAIT_SIGNAL("ncclWaitSignal", "2.29"),
    GROUP_START("ncclGroupStart"),
    GROUP_END("ncclGroupEnd"),
    GROUP_SIMULATE_END("ncclGroupSimulateEnd", "2.22"),
    PARAM_BIND("ncclParamBind", "2.30.4"),
    PARAM_GET_I8("ncclParamGetI8", "2.30.4"),
    PARAM_GET_I16("ncclParamGetI16", "2.30.4"),
    PARAM_GET_I32("ncclParamGetI32", "2.30.4"),
    PARAM_GET_I64("ncclParamGetI64", "2.30.4"),
    PARAM_GET_U8("ncclParamGetU8", "2.30.4"),
    PARAM_GET_U16("ncclParamGetU16", "2.30.4"),
    PARAM_GET_U32("ncclParamGetU32", "2.30.4"),
    PARAM_GET_U64("ncclParamGetU64", "2.30.4"),
    PARAM_GET_STR("ncclParamGetStr", "2.30.4"),
    PARAM_GET("ncclParamGet", "2.30.4"),
    PARAM_GET_PARAMETER("ncclParamGetParameter", "2.30.4"),
    PARAM_GET_ALL_PARAMETER_KEYS("ncclParamGetAllParameterKeys", "2.30.4"),
    PARAM_DUMP_ALL("ncclParamDumpAll", "2.30.4");

    static final List<NcclFunction> ALL = List.of(values());

    private final Export export;

    NcclFunction(String symbol) {
        this(symbol, null);
    }

    NcclFunction(String symbol, @Nullable String since) {
        export = new Export(symbol, since);
    }

    NcclFunction(Operation operation) {
        this(operation, null);
    }

    NcclFunction(Operation operation, @Nullable String since) {
        this("nccl" + operation.ncclName(), since);
    }

    @Override
    public Export export() {
        return export;
    }
}
