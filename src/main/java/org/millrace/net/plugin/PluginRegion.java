package org.millrace.net.plugin;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.DeviceRegion;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * A memory region of the network. The plugin registers the region with each communicator that uses it
 * ({@link CommMemory}).
 */
final class PluginRegion extends NativeRegion {

    private final int kind;
    /**
     * Smallest number that was not used by another open region of the network when this region was created.
     * Communicators use the number as an index into their arrays of handles.
     */
    private final int id;
    private final BitSet ids;
    private final Set<CommMemory> users = ConcurrentHashMap.newKeySet();

    /** Device region of the same memory as this region; null for host memory. */
    private final @Nullable DeviceRegion device;

    private PluginRegion(OpenResources network, MemorySegment segment, @Nullable DeviceRegion device, int id,
            BitSet ids) {
        super(network, segment, "plugin region " + id);
        this.device = device;
        kind = device == null ? plugin_h.NCCL_PTR_HOST() : plugin_h.NCCL_PTR_CUDA();
        this.id = id;
        this.ids = ids;
    }

    /** Creates a region of host memory. {@code ids} contains the IDs of the network's open regions. */
    public static PluginRegion of(OpenResources network, MemorySegment segment, BitSet ids) {
        return of(network, segment, null, ids);
    }

    static PluginRegion of(OpenResources network, DeviceRegion device, BitSet ids) {
        return of(network, device.segment(), device, ids);
    }

    private static PluginRegion of(OpenResources network, MemorySegment segment, @Nullable DeviceRegion device,
            BitSet ids) {
        synchronized (ids) {
            PluginRegion region = new PluginRegion(network, segment, device, ids.nextClearBit(0), ids);
            ids.set(region.id);
            return region;
        }
    }

    @Nullable
    DeviceRegion device() {
        return device;
    }

    /** Returns the kind of memory, one of {@code NCCL_PTR_...}. */
    int kind() {
        return kind;
    }

    int id() {
        return id;
    }

    Set<CommMemory> users() {
        return users;
    }

    /** Deregisters the memory with all communicators. No frame in flight may use the memory. */
    @Override
    protected void release() {
        users.forEach(user -> user.forget(this));
        synchronized (ids) {
            ids.clear(id);
        }
    }
}
