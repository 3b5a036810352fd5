package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclNetDeviceHandle_t;

/**
 * {@code ncclNetDeviceHandle_t}: the struct that a plugin's connect or accept hands out for the kernels.
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
 * The plugin writes the struct before its call returns. After that libnccl reads it on the same thread, so all accesses
 * are plain. The struct must stay at its address as long as the connection exists. Facts: NCCL 2.28
 * {@code nccl_device/net_device.h}; unchanged from plugin version 7 to 12.
 */
public final class NetDeviceHandle {
    public static final long BYTES = ncclNetDeviceHandle_t.sizeof();
    public static final long ALIGNMENT = ncclNetDeviceHandle_t.layout().byteAlignment();
    /** Type: data arrives as if there were no device handle. */
    public static final int HOST = device_h.NCCL_NET_DEVICE_HOST();
    /** Type: the kernel gathers slices itself, see {@link UnpackMeta}. */
    public static final int UNPACK = device_h.NCCL_NET_DEVICE_UNPACK();
    /** Type: GIN with descriptor queues that a CPU thread serves. */
    public static final int GIN_PROXY = device_h.NCCL_NET_DEVICE_GIN_PROXY();
    /** Type: GIN with queues of a network card; the kernel itself rings the card's doorbell. */
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
     * @param handle             address of the struct that the type's device side requires, 0 for none
     * @param needsProxyProgress whether NCCL's own proxy thread serves the connection; false for a takeover
     */
    public void set(int type, int version, long handle, long size, boolean needsProxyProgress) {
        Words.INT.set(segment, TYPE, type);
        Words.INT.set(segment, VERSION, version);
        Words.LONG.set(segment, HANDLE, handle);
        Words.LONG.set(segment, SIZE, size);
        Words.INT.set(segment, NEEDS_PROXY_PROGRESS, needsProxyProgress ? 1 : 0);
    }

    /** {@return {@link #HOST}, {@link #UNPACK}, {@link #GIN_PROXY} or {@link #GIN_GDAKI}} */
    public int type() {
        return (int) Words.INT.get(segment, TYPE);
    }

    /** {@return the version of the type's device side} */
    public int version() {
        return (int) Words.INT.get(segment, VERSION);
    }

    /** {@return the address of the struct that the type's device side requires} */
    public long handle() {
        return (long) Words.LONG.get(segment, HANDLE);
    }

    /** {@return the number of bytes at that address} */
    public long size() {
        return (long) Words.LONG.get(segment, SIZE);
    }

    /** {@return whether NCCL's own proxy thread serves the connection} */
    public boolean needsProxyProgress() {
        return (int) Words.INT.get(segment, NEEDS_PROXY_PROGRESS) != 0;
    }

    private static long offset(String field) {
        return ncclNetDeviceHandle_t.layout().byteOffset(groupElement(field));
    }
}
