package org.millrace.net.plugin;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.ffi.plugin.plugin_h;

/**
 * Properties of a network device, as the plugin reports them.
 *
 * @param index      index of the device among the plugin's devices
 * @param name       the plugin's name of the device
 * @param pciPath    directory of the device in {@code /sys}; empty if the plugin reports none
 * @param ptrSupport supported kinds of memory: bits {@code NCCL_PTR_...}
 * @param forceFlush whether the device's writes into GPU memory must be flushed on every GPU
 * @param speedMbps  speed in Mbit/s
 * @param maxComms   maximum number of connections
 * @param maxRecvs   maximum number of buffers of one receive
 * @param deviceType type of the NCCL kernels that the device needs; 0 if it works with all kernels
 * @param maxBytes   maximum length of one message in bytes
 */
public record PluginDevice(int index, String name, String pciPath, int ptrSupport, boolean forceFlush, int speedMbps,
        int maxComms, int maxRecvs, int deviceType, long maxBytes) {

    /**
     * Maximum number of buffers that Millrace uses in one receive, even if a plugin allows more; the same as in NCCL.
     */
    public static final int MAX_RECVS = 8;

    /** Reads the properties that the plugin's function getProperties has written. */
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

    /** Returns whether only special NCCL kernels can unpack data that the device has received. */
    boolean needsKernels() {
        return deviceType != NetDeviceHandle.HOST;
    }

    public boolean supports(int kind) {
        return (ptrSupport & kind) != 0;
    }

    /**
     * Returns a description such as {@code mlx5_0, 400 Gbit/s, host and CUDA memory, 8 receives at once, at /sys/...}.
     */
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
