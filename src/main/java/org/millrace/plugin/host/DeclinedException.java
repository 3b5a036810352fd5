package org.millrace.plugin.host;

/** Thrown to decline a request of NCCL, which then continues without it. The log does not show it as a warning. */
public final class DeclinedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public DeclinedException(String message) {
        super(message);
    }
}
