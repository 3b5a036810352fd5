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
 * Device memory that one end of a connection uses, as its communicator knows it. It does not belong to the network. The
 * communicator registers it at its first use, and the connection's close deregisters it. One thread.
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
     * Returns the region of a payload. Throws if the payload does not lie within memory of the network or of a device.
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
     * Returns whether the plugin accepts a device's memory. If it does not, which is logged once, payloads are staged.
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

    /** Forgets all memory. The communicator is closed. */
    void close() {
        known.values().forEach(PluginRegion::close);
    }
}
