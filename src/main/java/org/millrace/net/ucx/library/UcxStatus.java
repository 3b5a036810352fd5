package org.millrace.net.ucx.library;

import org.millrace.ffi.ucx.ucp_h;

/** What UCX answers. */
public final class UcxStatus {

    /** {@code UCS_ERR_NO_DEVICE}. */
    private static final int NO_DEVICE = -14;

    private UcxStatus() {}

    /** Whether what was returned in place of a request is a status: null for done, or an error. */
    public static boolean isStatus(long returned) {
        return returned == 0 || Long.compareUnsigned(returned, ucp_h.UCS_ERR_LAST()) >= 0;
    }

    /** What a status means, for messages. */
    public static String text(int status) {
        return UcxLibrary.text(ucp_h.ucs_status_string(status).address());
    }

    /**
     * What a call has made. Where no transport is left, as one that UCX_TLS names is missing, or {@code /dev/shm}
     * cannot be written, UCX 1.13 makes nothing, and calls that no error.
     */
    public static long made(int status, long handle, String what) {
        check(handle == 0 && status >= 0 ? NO_DEVICE : status, what);
        return handle;
    }

    /** Throws if a call of setting up has failed. */
    public static void check(int status, String what) {
        if (status < 0) {
            throw new UcxUnavailableException("UCX cannot " + what + " (" + text(status) + ", " + status + ")",
                    "doctor lists what it found, and with UCX_LOG_LEVEL=info it says more");
        }
    }
}
