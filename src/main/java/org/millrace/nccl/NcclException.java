package org.millrace.nccl;

import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/**
 * A call of NCCL failed. The message has the call, the code's name and number, what NCCL says of it, and what to do.
 */
public final class NcclException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** The function that failed. */
    private final String call;
    /** What it returned. */
    private final int code;

    /**
     * A failed call.
     *
     * @param where     on whose behalf: rank and device, or empty
     * @param lastError what {@code ncclGetLastError} tells of the last failure; null or empty if nothing
     */
    NcclException(String call, String where, int code, String text, @Nullable String lastError) {
        super(call + " failed" + (where.isEmpty() ? "" : " on " + where) + ": " + name(code) + " (" + code + "), "
                + text + "." + (lastError == null || lastError.isBlank() ? ""
                        : " NCCL says: " + lastError.strip().replaceAll("\\s*\\R\\s*", "; ") + ".")
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
     * {@return the function that failed, for instance {@code "ncclCommInitRank"}; {@code "ncclCommGetAsyncError"} if an
     * operation failed while it ran}
     */
    public String call() {
        return call;
    }

    /** {@return the error: a value of {@code ncclResult_t}} */
    public int code() {
        return code;
    }

    /** {@return the error, or null for one that is newer than these bindings} */
    public @Nullable NcclResult result() {
        return NcclResult.ofCode(code);
    }

    /** Its function and code are nowhere else. */
    @Override
    protected Throwable origin() {
        return this;
    }
}
