package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/** Registered memory, and whether the kernel reads it for a peer. */
final class ShmRegion extends NativeRegion {

    private static final String NAME = "shared-memory network's region";

    private final boolean readable;

    private ShmRegion(OpenResources network, MemorySegment memory, boolean readable) {
        super(network, memory, NAME);
        this.readable = readable;
    }

    /** Registers memory of any kind: some kinds, as a device's registers, are none that the kernel reads for others. */
    public static ShmRegion of(OpenResources network, MemorySegment memory, SingleCopy singleCopy) {
        return new ShmRegion(network, memory, singleCopy.use() != SingleCopy.Use.OFF && memory.isNative()
                && SingleCopy.isReadable(memory.address(), memory.byteSize()));
    }

    /** All memory of the process, which is the user's where it is used, and so of a kind that can be read. */
    public static ShmRegion all(OpenResources network) {
        return new ShmRegion(network, ALL_MEMORY, true);
    }

    /** Whether payloads may be left here until the peer has read them. */
    boolean isReadable() {
        return readable;
    }
}
