package org.millrace.nccl;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.operation.LibraryFailure;

/**
 * A failed call of NCCL. The message contains the function, the name and the number of the error, NCCL's own text, and
 * a remedy.
 */
public final class NcclException extends MillraceException implements LibraryFailure {

    private static final long serialVersionUID = 1L;

    private final String call;
    private final int code;

    /**
     * @param where     description of the caller's rank and device, or empty
     * @param lastError text of {@code ncclGetLastError} about the last failure; null or empty if NCCL has none
     */
    NcclException(String call, String where, int code, String text, @Nullable String lastError) {
        super(call + " failed" + (where.isEmpty() ? "" : " on " + where) + ": " + name(code) + " (" + code + "), "
                + text + "." + (lastError == null || lastError.isBlank() ? ""
                        : " NCCL reports: " + lastError.strip().replaceAll("\\s*\\R\\s*", "; ") + ".")
                + advice(code));
        this.call = call;
        this.code = code;
    }

    private static String name(int code) {
        NcclResult result = NcclResult.ofCode(code);
        return result == null ? "a result newer than these bindings" : result.symbol();
    }

    private static String advice(int code) {
        NcclResult result = NcclResult.ofCode(code);
        return result == null ? "" : " " + result.advice();
    }

    /**
     * {@return the name of the function that failed, for instance {@code "ncclCommInitRank"};
     * {@code "ncclCommGetAsyncError"} if an operation failed while it ran}
     */
    public String call() {
        return call;
    }

    /** {@return the error number: a value of {@code ncclResult_t}} */
    public int code() {
        return code;
    }

    /** {@return the error; null if the error number is newer than these bindings} */
    public @Nullable NcclResult result() {
        return NcclResult.ofCode(code);
    }
}
