package org.millrace.net.plugin;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.DeviceRegion;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * Memory that is registered with one communicator. The thread that first sends from a region or receives into it here
 * registers the region. Any thread that closes the region deregisters it, or the communicator's close does. The same
 * holds in NCCL: the thread that registers and deregisters is not the thread that sends.
 */
final class CommMemory {

    private static final Logger LOG = LogManager.getLogger(CommMemory.class);
    private static final int USUAL = 4;

    private final Session session;
    private final long communicator;
    /** Watch for calls from threads other than the communicator's thread. */
    private final CallWatch watch;
    private final MemorySegment result;
    /** Regions by their ID. Only the communicator's thread adds an entry, under this object's lock. */
    private @Nullable PluginRegion[] regions = new PluginRegion[USUAL];
    private long[] handles = new long[USUAL];
    private boolean closed;

    private final boolean byDmaBuf;

    /** @param result 8 bytes of the connection's memory */
    CommMemory(Session session, long communicator, CallWatch watch, MemorySegment result) {
        this.session = session;
        this.communicator = communicator;
        this.watch = watch;
        this.result = result;
        byDmaBuf = session.table().has(NetFunction.REG_MR_DMA_BUF)
                && session.devices().stream().allMatch(each -> each.supports(plugin_h.NCCL_PTR_DMABUF()));
    }

    /** Returns whether a region is registered. */
    boolean has(PluginRegion region) {
        return region.id() < regions.length && regions[region.id()] == region;
    }

    /** Returns the plugin's handle of a registered region ({@link #has}). */
    long handle(PluginRegion region) {
        return handles[region.id()];
    }

    /** Registers a region. Returns NCCL's result. */
    synchronized int register(PluginRegion region) {
        int id = region.id();
        if (id >= regions.length) {
            handles = Arrays.copyOf(handles, 2 * id);
            regions = Arrays.copyOf(regions, 2 * id);
        }
        result.set(ValueLayout.JAVA_LONG, 0, 0);
        int code = registerWithPlugin(region);
        if (code == NetTable.SUCCESS) {
            handles[id] = result.get(ValueLayout.JAVA_LONG, 0);
            regions[id] = region;
            region.users().add(this);
        }
        return code;
    }

    /**
     * Registers a device's memory by its DMA-BUF, if plugin and device support that, as NCCL does. Other memory, and
     * memory with a refused DMA-BUF, is registered by its address.
     */
    private int registerWithPlugin(PluginRegion region) {
        NetTable table = session.table();
        long address = region.segment().address();
        long bytes = region.segment().byteSize();
        DeviceRegion device = region.device();
        if (device != null && byDmaBuf) {
            int code = device.lendDmaBuf(descriptor -> table.regMrDmaBuf(watch, communicator, address, bytes,
                    region.kind(), 0, descriptor, result.address()));
            if (code == NetTable.SUCCESS) {
                return code;
            }
        }
        return table.regMr(watch, communicator, address, bytes, region.kind(), result.address());
    }

    /** Deregisters a region that is being closed. */
    synchronized void forget(PluginRegion region) {
        if (!closed && has(region)) {
            deregister(region.id());
        }
    }

    private void deregister(int id) {
        regions[id] = null;
        int code = session.table().deregMr(watch, communicator, handles[id]);
        if (code != NetTable.SUCCESS) {
            LOG.debug("{}", session.failed(NetFunction.DEREG_MR, code));
        }
    }

    /** Deregisters all remaining regions. The communicator is closed next. */
    synchronized void close() {
        closed = true;
        for (int id = 0; id < regions.length; id++) {
            PluginRegion region = regions[id];
            if (region != null) {
                deregister(id);
                region.users().remove(this);
            }
        }
    }
}
