package org.millrace.net.plugin;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.ffi.plugin.plugin_h;

/**
 * What a plugin says of one of its devices.
 *
 * @param index      which one
 * @param name       as the plugin calls it
 * @param pciPath    where it is in {@code /sys}; empty if it does not say
 * @param ptrSupport kinds of memory that it takes: bits {@code NCCL_PTR_...}
 * @param forceFlush whether what it writes into GPU memory has to be flushed, whatever the GPU
 * @param speedMbps  Mbit/s
 * @param maxComms   connections that it allows
 * @param maxRecvs   buffers of one receive at the most
 * @param deviceType which kernels of NCCL's it works with: 0 for any
 * @param maxBytes   of one message
 */
public record PluginDevice(int index, String name, String pciPath, int ptrSupport, boolean forceFlush, int speedMbps,
        int maxComms, int maxRecvs, int deviceType, long maxBytes) {

    /** The largest that is used here, however many a plugin allows: as many as NCCL itself uses. */
    public static final int MAX_RECVS = 8;

    /** Reads what getProperties wrote. */
    static PluginDevice read(int index, TableVersion version, MemorySegment properties) {
        Fields fields = new Fields(version.properties(), properties);
        long limit = version.hasLongSizes() ? plugin_h.MAX_NET_SIZE() : Integer.MAX_VALUE;
        long p2p = version.hasLongSizes() ? fields.number("maxP2pBytes") : 0;
        long collective = version.hasLongSizes() ? fields.number("maxCollBytes") : 0;
        limit = p2p > 0 ? Math.min(limit, p2p) : limit;
        limit = collective > 0 ? Math.min(limit, collective) : limit;
        return new PluginDevice(index, fields.text("name"), fields.text("pciPath"), fields.integer("ptrSupport"),
                version.hasLongSizes() && fields.integer("forceFlush") != 0, fields.integer("speed"),
                fields.integer("maxComms"), Math.clamp(fields.integer("maxRecvs"), 1, MAX_RECVS),
                fields.integer("netDeviceType"), limit);
    }

    private record Fields(GroupLayout layout, MemorySegment struct) {

        private long at(String field) {
            return layout.byteOffset(PathElement.groupElement(field));
        }

        int integer(String field) {
            return struct.get(ValueLayout.JAVA_INT, at(field));
        }

        long number(String field) {
            return struct.get(ValueLayout.JAVA_LONG, at(field));
        }

        String text(String field) {
            String text = NetTable.text(struct.get(ValueLayout.ADDRESS, at(field)));
            return text == null ? "" : text;
        }
    }

    /** Whether its data is put together by kernels of NCCL's that know how. */
    boolean needsKernels() {
        return deviceType != NetDeviceHandle.HOST;
    }

    /** Whether it takes a kind of memory. */
    public boolean supports(int kind) {
        return (ptrSupport & kind) != 0;
    }

    /** {@code mlx5_0, 400 Gbit/s, host and CUDA memory, 8 receives at once, at /sys/...}. */
    public String describe() {
        String memory = "host" + (supports(plugin_h.NCCL_PTR_CUDA()) ? " and CUDA" : "") + " memory"
                + (supports(plugin_h.NCCL_PTR_DMABUF()) ? " and DMA-BUFs" : "");
        String speed = speedMbps % 1000 == 0 ? speedMbps / 1000 + " Gbit/s" : speedMbps + " Mbit/s";
        return name + ", " + speed + ", " + memory + ", " + maxRecvs + (maxRecvs == 1 ? " receive" : " receives")
                + " at once" + (pciPath.isEmpty() ? "" : ", at " + pciPath);
    }

    @Override
    public String toString() {
        return name;
    }
}
