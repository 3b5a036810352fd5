package org.millrace.net.plugin;

import java.util.BitSet;
import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.plugin.NetTable.NetFunction;

/**
 * Regions for the device memory that one end of a connection uses. Device memory does not belong to the network. This
 * class registers the memory with the communicator at the first use of the memory, and deregisters it when the
 * connection is closed. Used by one thread.
 */
final class DeviceMemories {

    private static final Logger LOG = LogManager.getLogger(DeviceMemories.class);

    private final PluginConnection connection;
    private final BitSet regions;
    private final Map<DeviceRegion, PluginRegion> known = new IdentityHashMap<>();
    private @Nullable DeviceRegion refused;

    DeviceMemories(PluginConnection connection, BitSet regions) {
        this.connection = connection;
        this.regions = regions;
    }

    /**
     * Returns the region that contains a payload. Throws an exception if the payload lies neither within memory of the
     * network nor within a device's memory.
     */
    PluginRegion region(@Nullable MemoryRegion region, long offset, long bytes) {
        return (PluginRegion) NativeRegion.check(region instanceof DeviceRegion device ? of(device) : region,
                connection.network(), offset, bytes);
    }

    private PluginRegion of(DeviceRegion device) {
        PluginRegion region = known.get(device);
        if (region == null) {
            region = PluginRegion.of(connection.network(), device, regions);
            known.put(device, region);
        }
        return region;
    }

    /**
     * Returns whether the plugin accepts the memory of a device. If the plugin refuses it, one warning is logged, and
     * payloads are copied to host memory before they are sent.
     */
    boolean isTaken(DeviceRegion device, PluginComm communicator) {
        if (device == refused || connection.isBroken()) {
            return false;
        }
        PluginRegion region = of(device);
        if (communicator.memory.has(region)) {
            return true;
        }
        int result = communicator.memory.register(region);
        if (result == NetTable.SUCCESS) {
            return true;
        }
        refused = device;
        LOG.warn("{}: the memory of a GPU is not sent as it is, but by way of the host's: {}", connection,
                connection.session().failed(NetFunction.REG_MR, result));
        return false;
    }

    /** Ends the use of all device memory. The communicator must be closed before this call. */
    void close() {
        known.values().forEach(PluginRegion::close);
    }
}
