package org.millrace.plugin.host;

/**
 * Thrown to decline a request of NCCL. NCCL then continues without the requested feature, so the log shows no warning.
 */
public final class DeclinedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public DeclinedException(String message) {
        super(message);
    }
}
