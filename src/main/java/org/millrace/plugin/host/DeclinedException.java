package org.millrace.plugin.host;

/** Declines a request of NCCL, which continues without it. It is logged, but not as a warning. */
public final class DeclinedException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public DeclinedException(String message) {
        super(message);
    }
}
