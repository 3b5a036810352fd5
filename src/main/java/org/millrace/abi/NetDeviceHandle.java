package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclNetDeviceHandle_t;
import org.millrace.foreign.Words;

/**
 * {@code ncclNetDeviceHandle_t}: the description of a connection for the kernels. A plugin's connect or accept returns
 * it.
 *
 * <pre>
 *    0           4           8                       16                      24                  28     32
 *    +-----------+-----------+-----------------------+-----------------------+-------------------+------+
 *    | type      | version   | handle                | size                  |needsProxyProgress | pad  |
 *    +-----------+-----------+-----------------------+-----------------------+-------------------+------+
 *      i32         i32         pointer                 u64                     i32
 * </pre>
 *
 * <p>
 * The plugin writes the struct before connect or accept returns. After that libnccl reads the struct on the same
 * thread, so all accesses are plain. The struct must stay at its address as long as the connection exists. Facts: NCCL
 * 2.28 {@code nccl_device/net_device.h}; unchanged from plugin version 7 to 12.
 */
public final class NetDeviceHandle {
    public static final long BYTES = ncclNetDeviceHandle_t.sizeof();
    public static final long ALIGNMENT = ncclNetDeviceHandle_t.layout().byteAlignment();
    /** Type: received data lies in slots, as on a connection without a device handle. */
    public static final int HOST = device_h.NCCL_NET_DEVICE_HOST();
    /** Type: the kernel itself gathers the pieces of received slices, see {@link UnpackMeta}. */
    public static final int UNPACK = device_h.NCCL_NET_DEVICE_UNPACK();
    /** Type: GIN with descriptor queues that a CPU thread, the proxy, serves. */
    public static final int GIN_PROXY = device_h.NCCL_NET_DEVICE_GIN_PROXY();
    /**
     * Type: GIN with queues of a network card. The kernel itself notifies the card by a store to the card's doorbell
     * register.
     */
    public static final int GIN_GDAKI = device_h.NCCL_NET_DEVICE_GIN_GDAKI();

    private static final long TYPE = offset("netDeviceType");
    private static final long VERSION = offset("netDeviceVersion");
    private static final long HANDLE = offset("handle");
    private static final long SIZE = offset("size");
    private static final long NEEDS_PROXY_PROGRESS = offset("needsProxyProgress");

    private final MemorySegment segment;

    private NetDeviceHandle(MemorySegment segment) {
        this.segment = segment;
    }

    /** {@return a view of a handle of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static NetDeviceHandle of(MemorySegment segment) {
        return new NetDeviceHandle(Words.checked("ncclNetDeviceHandle_t", segment, BYTES, ALIGNMENT));
    }

    /**
     * Sets every field.
     *
     * @param type               {@link #HOST}, {@link #UNPACK}, {@link #GIN_PROXY} or {@link #GIN_GDAKI}
     * @param version            version of the struct at {@code handle}
     * @param handle             address of the struct that kernels need for this type; 0 if they need none
     * @param size               size of that struct in bytes
     * @param needsProxyProgress whether NCCL's own proxy thread must serve the connection; false for a takeover
     */
    public void set(int type, int version, long handle, long size, boolean needsProxyProgress) {
        Words.INT.set(segment, TYPE, type);
        Words.INT.set(segment, VERSION, version);
        Words.LONG.set(segment, HANDLE, handle);
        Words.LONG.set(segment, SIZE, size);
        Words.INT.set(segment, NEEDS_PROXY_PROGRESS, needsProxyProgress ? 1 : 0);
    }

    /** {@return the address of the struct that kernels need for this type} */
    public long handle() {
        return (long) Words.LONG.get(segment, HANDLE);
    }

    /** {@return the size in bytes of the struct at {@link #handle()}} */
    public long size() {
        return (long) Words.LONG.get(segment, SIZE);
    }

    private static long offset(String field) {
        return ncclNetDeviceHandle_t.layout().byteOffset(groupElement(field));
    }
}
