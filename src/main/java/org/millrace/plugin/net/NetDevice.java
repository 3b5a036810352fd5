package org.millrace.plugin.net;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.ncclNetProperties_v8_t;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;
import org.millrace.ffi.plugin.ncclNetVDeviceProps_v12_t;
import org.millrace.ffi.plugin.ncclNetVDeviceProps_v9_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.plugin.shim.NativeMemory;
import org.millrace.plugin.unpack.UnpackDevice;

/**
 * A network device, as NCCL's topology sees it.
 *
 * @param name      C string that is never freed, as NCCL keeps the pointer
 * @param speedMbps what the interface says, in Mbit/s
 */
public record NetDevice(MemorySegment name, int speedMbps) {

    /** What NCCL's own socket network says of an interface that does not tell its speed. */
    private static final int USUAL_SPEED_MBPS = 10_000;

    private static final int MAX_COMMS = 1 << 16;
    private static final int MAX_RECVS = 1;
    private static final short UNDEFINED = -1;

    /** The device of an address of this machine. */
    public static NetDevice of(InetAddress address) {
        String name = interfaceOf(address);
        return new NetDevice(Arena.global().allocateFrom(name), speed(name));
    }

    private static String interfaceOf(InetAddress address) {
        try {
            NetworkInterface found = NetworkInterface.getByInetAddress(address);
            return found == null ? address.getHostAddress() : found.getName();
        } catch (SocketException e) {
            return address.getHostAddress();
        }
    }

    private static int speed(String name) {
        try {
            int speed = Integer.parseInt(Files.readString(Path.of("/sys/class/net", name, "speed")).strip());
            return speed > 0 ? speed : USUAL_SPEED_MBPS;
        } catch (IOException | NumberFormatException unknown) {
            return USUAL_SPEED_MBPS;
        }
    }

    /**
     * Fills in what getProperties returns, in the struct of a table's version. v9 adds virtual devices and size limits
     * in the middle, v11 appends multi-requests, v12 makes virtual devices larger and appends rails; the fields of v8
     * and v9 stand at the same places in all.
     *
     * @param unpacks      whether kernels gather what they receive from pages
     * @param deviceMemory whether it takes the memory of GPUs
     */
    public void writeProperties(int version, int index, boolean unpacks, boolean deviceMemory, long address) {
        int memory = plugin_h.NCCL_PTR_HOST() | (deviceMemory ? plugin_h.NCCL_PTR_CUDA() : 0);
        switch (version) {
            case 8 -> writeV8(index, unpacks, memory, NativeMemory.at(address, ncclNetProperties_v8_t.sizeof()));
            case 9, 10 -> writeV9(index, unpacks, memory, NativeMemory.at(address, ncclNetProperties_v9_t.sizeof()));
            case 11 -> writeV11(index, unpacks, memory, NativeMemory.at(address, ncclNetProperties_v11_t.sizeof()));
            case 12 -> writeV12(index, unpacks, memory, NativeMemory.at(address, ncclNetProperties_v12_t.sizeof()));
            default -> throw new IllegalArgumentException("network tables have versions 8 to 12, not " + version);
        }
    }

    private void writeV8(int index, boolean unpacks, int memory, MemorySegment to) {
        ncclNetProperties_v8_t.name(to, name);
        ncclNetProperties_v8_t.pciPath(to, MemorySegment.NULL);
        ncclNetProperties_v8_t.guid(to, index);
        ncclNetProperties_v8_t.ptrSupport(to, memory);
        ncclNetProperties_v8_t.regIsGlobal(to, 0);
        ncclNetProperties_v8_t.speed(to, speedMbps);
        ncclNetProperties_v8_t.port(to, 0);
        ncclNetProperties_v8_t.latency(to, 0);
        ncclNetProperties_v8_t.maxComms(to, MAX_COMMS);
        ncclNetProperties_v8_t.maxRecvs(to, MAX_RECVS);
        ncclNetProperties_v8_t.netDeviceType(to, deviceType(unpacks));
        ncclNetProperties_v8_t.netDeviceVersion(to, unpacks ? UnpackDevice.Connection.VERSION : 0);
    }

    private void writeV9(int index, boolean unpacks, int memory, MemorySegment to) {
        writeHead(index, unpacks, memory, to);
        MemorySegment virtual = ncclNetProperties_v9_t.vProps(to);
        ncclNetVDeviceProps_v9_t.ndevs(virtual, 1);
        ncclNetVDeviceProps_v9_t.devs(virtual, 0, index);
        ncclNetProperties_v9_t.maxP2pBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v9_t.maxCollBytes(to, plugin_h.MAX_NET_SIZE());
    }

    private void writeV11(int index, boolean unpacks, int memory, MemorySegment to) {
        writeV9(index, unpacks, memory, to);
        ncclNetProperties_v11_t.maxMultiRequestSize(to, 1);
    }

    private void writeV12(int index, boolean unpacks, int memory, MemorySegment to) {
        writeHead(index, unpacks, memory, to);
        MemorySegment virtual = ncclNetProperties_v12_t.vProps(to);
        ncclNetVDeviceProps_v12_t.ndevs(virtual, 1);
        ncclNetVDeviceProps_v12_t.devs(virtual, 0, index);
        ncclNetProperties_v12_t.maxP2pBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v12_t.maxCollBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v12_t.maxMultiRequestSize(to, 1);
        ncclNetProperties_v12_t.railId(to, UNDEFINED);
        ncclNetProperties_v12_t.planeId(to, UNDEFINED);
    }

    /** No kernel of NCCL's talks to a plain host device. */
    private static int deviceType(boolean unpacks) {
        return unpacks ? NetDeviceHandle.UNPACK : NetDeviceHandle.HOST;
    }

    /** Everything before the virtual devices, which v9 to v12 have alike. */
    private void writeHead(int index, boolean unpacks, int memory, MemorySegment to) {
        ncclNetProperties_v9_t.name(to, name);
        ncclNetProperties_v9_t.pciPath(to, MemorySegment.NULL);
        ncclNetProperties_v9_t.guid(to, index);
        ncclNetProperties_v9_t.ptrSupport(to, memory);
        ncclNetProperties_v9_t.regIsGlobal(to, 0);
        ncclNetProperties_v9_t.forceFlush(to, 0);
        ncclNetProperties_v9_t.speed(to, speedMbps);
        ncclNetProperties_v9_t.port(to, 0);
        ncclNetProperties_v9_t.latency(to, 0);
        ncclNetProperties_v9_t.maxComms(to, MAX_COMMS);
        ncclNetProperties_v9_t.maxRecvs(to, MAX_RECVS);
        ncclNetProperties_v9_t.netDeviceType(to, deviceType(unpacks));
        ncclNetProperties_v9_t.netDeviceVersion(to, unpacks ? UnpackDevice.Connection.VERSION : 0);
    }

    @Override
    public String toString() {
        return name.getString(0);
    }
}
