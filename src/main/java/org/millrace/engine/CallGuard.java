package org.millrace.engine;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.OperationGroup;
import org.millrace.device.EmulatedDevice;

/** What must be so when a program calls a communicator, before anything is done for the call. Safe from any thread. */
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

    /** No call is let in any more. Returns whether this was so for the first time. */
    boolean close() {
        return closed.compareAndSet(false, true);
    }

    boolean isClosed() {
        return closed.get();
    }

    /** The communicator is open and has not failed, and the caller is no function that its device calls. */
    void checkOpen() {
        if (closed.get()) {
            throw new MillraceException(label("the communicator is closed"));
        }
        failure.throwIfFailed();
        device.checkCaller();
    }

    /** The same, and there is a stream of the device; waits until it has room for more. */
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

    void requireNoGroup(String what, LaunchQueue launches) {
        if (OperationGroup.isOpen() || launches.isInGroup()) {
            throw new IllegalStateException(label(what + " outside of groups"));
        }
    }

    /** A message with whose it is. */
    String label(String what) {
        return "rank " + rank + ", " + what;
    }
}
