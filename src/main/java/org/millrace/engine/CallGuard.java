package org.millrace.engine;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.device.EmulatedDevice;
import org.millrace.operation.OperationGroup;

/**
 * Checks each call that a program makes to a communicator, before the call has any effect. Callable from any thread.
 */
final class CallGuard {

    private final int rank;
    private final EmulatedDevice device;
    private final CommunicatorFailure failure;
    private final AtomicBoolean closed = new AtomicBoolean();

    CallGuard(int rank, EmulatedDevice device, CommunicatorFailure failure) {
        this.rank = rank;
        this.device = device;
        this.failure = failure;
    }

    /** Refuses all further calls. Returns whether this was the first call of this method. */
    boolean close() {
        return closed.compareAndSet(false, true);
    }

    boolean isClosed() {
        return closed.get();
    }

    /**
     * Requires that the communicator is open and has not failed. Refuses a call that a callback of the communicator's
     * device makes.
     */
    void checkOpen() {
        if (closed.get()) {
            throw new MillraceException(label("the communicator is closed"));
        }
        failure.throwIfFailed();
        device.checkCaller();
    }

    /**
     * Performs the checks of {@link #checkOpen()}, and requires that the stream belongs to the device. Then waits until
     * the stream has room for another operation.
     */
    void checkOpen(DeviceStream stream) {
        checkOpen();
        device.check(stream);
        device.awaitRoom(stream);
    }

    void requireNoCapture(String what, DeviceStream stream, List<DeviceStream> others) {
        if (stream.isCapturing() || others.stream().anyMatch(DeviceStream::isCapturing)) {
            throw new IllegalStateException(label(what + " outside of captures"));
        }
    }

    void requireNoGroup(String what, boolean isRecording) {
        if (OperationGroup.isOpen() || isRecording) {
            throw new IllegalStateException(label(what + " outside of groups"));
        }
    }

    /** Returns a message that names this rank. */
    String label(String what) {
        return "rank " + rank + ", " + what;
    }
}
