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
 * Memory that is registered with one communicator. The thread that first uses a region with this communicator, for a
 * send or a receive, registers the region. The thread that closes the region or the communicator deregisters the
 * region. Any thread may close a region. NCCL also registers and deregisters on one thread and sends on another thread.
 */
final class CommMemory {

    private static final Logger LOG = LogManager.getLogger(CommMemory.class);
    private static final int USUAL = 4;

    private final Session session;
    private final long communicator;
    /** Watch for the calls of this object. Threads other than the communicator's thread may make these calls, too. */
    private final CallWatch watch;
    private final MemorySegment result;
    /** Registered regions, by ID. Only the communicator's thread adds entries, while it holds this object's lock. */
    private @Nullable PluginRegion[] regions = new PluginRegion[USUAL];
    private long[] handles = new long[USUAL];
    private boolean closed;

    private final boolean byDmaBuf;

    /** @param result 8 bytes of the connection's memory, in which the plugin stores a handle */
    CommMemory(Session session, long communicator, CallWatch watch, MemorySegment result) {
        this.session = session;
        this.communicator = communicator;
        this.watch = watch;
        this.result = result;
        byDmaBuf = session.table().has(NetFunction.REG_MR_DMA_BUF)
                && session.devices().stream().allMatch(each -> each.supports(plugin_h.NCCL_PTR_DMABUF()));
    }

    /** Returns whether a region is registered with the communicator. */
    boolean has(PluginRegion region) {
        return region.id() < regions.length && regions[region.id()] == region;
    }

    /** Returns the plugin's handle of a region. The region must be registered ({@link #has}). */
    long handle(PluginRegion region) {
        return handles[region.id()];
    }

    /** Registers a region with the communicator. Returns NCCL's result code. */
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
     * Registers device memory by its DMA-BUF, as NCCL does, if the plugin and all its devices support this. Other
     * memory is registered by its address. Device memory is also registered by its address if the plugin refuses the
     * DMA-BUF.
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

    /** Deregisters all remaining regions. The caller closes the communicator afterwards. */
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
