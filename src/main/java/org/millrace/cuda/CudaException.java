package org.millrace.cuda;

import org.millrace.MillraceException;

/**
 * A call of the CUDA runtime failed. The message has the call, the error's name, number and text, and what to do where
 * that is known.
 */
public final class CudaException extends MillraceException {

    private static final long serialVersionUID = 1L;

    private final String call;
    private final int code;

    /**
     * A failed call.
     *
     * @param call   the function
     * @param code   its {@code cudaError_t}
     * @param name   what {@code cudaGetErrorName} calls it
     * @param text   what {@code cudaGetErrorString} says of it
     * @param detail what else is known, such as a compiler's log; may be empty
     */
    CudaException(String call, int code, String name, String text, String detail) {
        super(call + " failed: " + name + " (" + code + "): " + text + "."
                + (detail.isBlank() ? "" : " " + detail.strip())
                + (CudaAdvice.of(code).isEmpty() ? "" : " " + CudaAdvice.of(code)));
        this.call = call;
        this.code = code;
    }

    /**
     * The function that failed.
     *
     * @return for instance {@code "cudaMalloc"}
     */
    public String call() {
        return call;
    }

    /**
     * The error.
     *
     * @return a value of {@code cudaError_t}
     */
    public int code() {
        return code;
    }
}
