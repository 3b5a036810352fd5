package org.millrace.proxy;

/**
 * The device runs on without credits, as NCCL's kernels do once their communicator is aborted: what it posts means
 * nothing any more.
 */
public final class DeviceAbortedException extends ProxyException {

    private static final long serialVersionUID = 1L;

    /** What gave the device away. */
    public DeviceAbortedException(String message) {
        super(message);
    }
}
