package org.millrace.plugin;

import java.time.Duration;
import org.millrace.agent.Waiting;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;

/**
 * Memory of a device, and as much memory of the host in which its payloads are staged: each at the offset that it has
 * in the device's memory. Slots that are not in use twice are not staged twice either.
 *
 * @param device where payloads lie
 * @param host   registered with the connection's network
 */
record Staging(DeviceRegion device, MemoryRegion host) {

    /** In place of a copy's number: the payload needs none, or its copy has not begun. */
    public static final long NO_COPY = -1;
    /** A device's copies end by themselves, within milliseconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    /** Returns whether a copy may be begun now; ask again in a later pass if not. */
    public boolean hasRoom() {
        return device.copies().hasRoom();
    }

    /** Begins to copy bytes out of the device's memory; returns the copy's number. */
    public long copyOut(long offset, long bytes) {
        return device.copies().copy(host.segment().address() + offset, device.address() + offset, bytes);
    }

    /** Begins to copy bytes into the device's memory; returns the copy's number. */
    public long copyIn(long offset, long bytes) {
        return device.copies().copyFromHost(device.address() + offset, host.segment().address() + offset, bytes);
    }

    /** Whether a copy has been made, or none was needed. */
    public boolean isCopied(long copy) {
        return copy == NO_COPY || device.copies().isDone(copy);
    }

    /**
     * Waits for a copy and all before it, as their memory is freed next. Callable from any thread when no other uses
     * the copies.
     */
    public void awaitCopy(long copy) {
        if (copy == NO_COPY) {
            return;
        }
        try (DeviceRegion.Use _ = device.copies().enter()) {
            if (!Waiting.until(() -> isCopied(copy), PATIENCE)) {
                NcclLog.warn(
                        "a GPU has not made a copy within " + PATIENCE.toSeconds() + " s whose memory NCCL frees next");
            }
        }
    }
}
