package org.millrace.plugin.takeover;

import java.time.Duration;
import org.millrace.agent.Waiting;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;
import org.millrace.plugin.host.NcclLog;

/**
 * Device memory with a connection's slots, and host memory of equal size through which their payloads pass. Each
 * payload has the same offset in both. A slot and the corresponding range of the host memory hold one payload at a
 * time.
 *
 * @param device memory of the payloads
 * @param host   memory registered with the connection's network
 */
record Staging(DeviceRegion device, MemoryRegion host) {

    /** Number that stands for a copy that is not needed or has not begun. */
    public static final long NO_COPY = -1;
    /** Time limit for a device's copies, which complete within milliseconds. */
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    /** Returns whether a copy may begin now. If not, the caller asks again in a later pass. */
    public boolean hasRoom() {
        return device.copies().hasRoom();
    }

    /** Begins to copy bytes out of the device's memory. Returns the copy's number. */
    public long copyOut(long offset, long bytes) {
        return device.copies().copy(host.segment().address() + offset, device.address() + offset, bytes);
    }

    /** Begins to copy bytes into the device's memory. Returns the copy's number. */
    public long copyIn(long offset, long bytes) {
        return device.copies().copyFromHost(device.address() + offset, host.segment().address() + offset, bytes);
    }

    /** Returns whether a copy is complete or was not needed. */
    public boolean isCopied(long copy) {
        return copy == NO_COPY || device.copies().isDone(copy);
    }

    /**
     * Waits for a copy and all earlier copies, because the caller frees the memory that these copies access. Callable
     * from any thread, if no other thread uses {@link DeviceRegion#copies} at the same time.
     */
    public void awaitCopy(long copy) {
        if (copy == NO_COPY) {
            return;
        }
        try (DeviceRegion.Use _ = device.copies().enter()) {
            if (!Waiting.until(() -> isCopied(copy), TIMEOUT)) {
                NcclLog.warn(
                        "a GPU has not made a copy within " + TIMEOUT.toSeconds() + " s whose memory NCCL frees next");
            }
        }
    }
}
