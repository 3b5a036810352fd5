package org.millrace.plugin.path;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.ncclNetProperties_v8_t;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;
import org.millrace.ffi.plugin.ncclNetVDeviceProps_v12_t;
import org.millrace.ffi.plugin.ncclNetVDeviceProps_v9_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.plugin.PluginDevice;
import org.millrace.net.socket.LocalAddress;
import org.millrace.plugin.host.NativeMemory;

/**
 * A network device in NCCL's topology. It represents all interfaces that this process uses.
 *
 * @param name      C string that is never freed, because NCCL keeps the pointer: {@code eth0}, or {@code eth0+eth1}
 * @param speedMbps sum of the interfaces' speeds in Mbit/s
 * @param pciPath   C string that is never freed: path of the first interface's card in {@code /sys}; {@code NULL}
 *                  without a card, as for loopback
 */
public record NetDevice(MemorySegment name, int speedMbps, MemorySegment pciPath) {

    /**
     * Speed in Mbit/s that is assumed for an interface that does not report its speed. NCCL's own socket network
     * assumes the same speed.
     */
    private static final int USUAL_SPEED_MBPS = 10_000;

    private static final Path INTERFACES = Path.of("/sys/class/net");

    private static final int MAX_COMMS = 1 << 16;
    private static final short UNDEFINED = -1;

    /**
     * Properties that depend on the data path.
     *
     * @param unpacks      whether kernels gather their received data from pages
     * @param deviceMemory whether the device accepts GPU memory
     * @param maxRecvs     maximum number of buffers of one receive
     */
    public record Abilities(boolean unpacks, boolean deviceMemory, int maxRecvs) {

        private int memory() {
            return plugin_h.NCCL_PTR_HOST() | (deviceMemory ? plugin_h.NCCL_PTR_CUDA() : 0);
        }
    }

    public static NetDevice of(List<InetAddress> addresses) {
        return of(INTERFACES, addresses.stream().map(address -> LocalAddress.of(address).name()).distinct().toList());
    }

    static NetDevice of(Path directory, List<String> interfaces) {
        MemorySegment path = interfaces.stream()
                .map(each -> card(directory.resolve(each)))
                .filter(card -> !card.isEmpty())
                .findFirst()
                .map(Arena.global()::allocateFrom)
                .orElse(MemorySegment.NULL);
        return new NetDevice(Arena.global().allocateFrom(String.join("+", interfaces)),
                interfaces.stream().mapToInt(each -> speed(directory.resolve(each))).sum(), path);
    }

    static NetDevice ofPlugin(List<PluginDevice> devices) {
        String path = devices.getFirst().pciPath();
        return new NetDevice(
                Arena.global().allocateFrom(devices.stream().map(PluginDevice::name).collect(Collectors.joining("+"))),
                devices.stream().mapToInt(PluginDevice::speedMbps).sum(),
                path.isEmpty() ? MemorySegment.NULL : Arena.global().allocateFrom(path));
    }

    private static int speed(Path directory) {
        try {
            int speed = Integer.parseInt(Files.readString(directory.resolve("speed")).strip());
            return speed > 0 ? speed : USUAL_SPEED_MBPS;
        } catch (IOException | NumberFormatException unknown) {
            return USUAL_SPEED_MBPS;
        }
    }

    /**
     * Returns the path of an interface's network card, computed as in NCCL's own socket network. NCCL's topology omits
     * devices that are not cards on the PCI bus.
     */
    private static String card(Path directory) {
        try {
            return directory.resolve("device").toRealPath().toString();
        } catch (IOException none) {
            return "";
        }
    }

    /**
     * Writes the result of getProperties in the struct of the given version of the network table. v9 adds forceFlush
     * before speed, and virtual devices and size limits at the end. v11 appends multi-requests. v12 enlarges the struct
     * of virtual devices and appends rails. The fields before the virtual devices have equal offsets in v9 to v12.
     *
     * <p>
     * Uses no separate VarHandles for pointers and arrays: pointers are written as numbers, and array elements by
     * offset. The JVM would take milliseconds to compile each VarHandle at its first use, while ncclCommInitRank waits.
     *
     * @param abilities properties that depend on the data path
     */
    public void writeProperties(int version, int index, Abilities abilities, long address) {
        switch (version) {
            case 8 -> writeV8(index, abilities, NativeMemory.at(address, ncclNetProperties_v8_t.sizeof()));
            case 9, 10, 11 -> {
                writeV9(index, abilities, NativeMemory.at(address, ncclNetProperties_v9_t.sizeof()));
                if (version == 11) {
                    ncclNetProperties_v11_t
                            .maxMultiRequestSize(NativeMemory.at(address, ncclNetProperties_v11_t.sizeof()), 1);
                }
            }
            case 12 -> writeV12(index, abilities, NativeMemory.at(address, ncclNetProperties_v12_t.sizeof()));
            default -> throw new IllegalArgumentException("network tables have versions 8 to 12, not " + version);
        }
    }

    /** Writes the fields of v8, which are the first fields of v9 except for forceFlush. */
    private void writeV8(int index, Abilities abilities, MemorySegment to) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment head = ncclNetProperties_v9_t.allocate(arena);
            writeHead(index, abilities, head);
            long before = ncclNetProperties_v9_t.forceFlush$offset();
            MemorySegment.copy(head, 0, to, 0, before);
            MemorySegment.copy(head, ncclNetProperties_v9_t.speed$offset(), to, before, to.byteSize() - before);
        }
    }

    private void writeV9(int index, Abilities abilities, MemorySegment to) {
        writeHead(index, abilities, to);
        MemorySegment virtual = ncclNetProperties_v9_t.vProps(to);
        ncclNetVDeviceProps_v9_t.ndevs(virtual, 1);
        ncclNetVDeviceProps_v9_t.devs(virtual).set(ValueLayout.JAVA_INT, 0, index);
        ncclNetProperties_v9_t.maxP2pBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v9_t.maxCollBytes(to, plugin_h.MAX_NET_SIZE());
    }

    private void writeV12(int index, Abilities abilities, MemorySegment to) {
        writeHead(index, abilities, to);
        MemorySegment virtual = ncclNetProperties_v12_t.vProps(to);
        ncclNetVDeviceProps_v12_t.ndevs(virtual, 1);
        ncclNetVDeviceProps_v12_t.devs(virtual).set(ValueLayout.JAVA_INT, 0, index);
        ncclNetProperties_v12_t.maxP2pBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v12_t.maxCollBytes(to, plugin_h.MAX_NET_SIZE());
        ncclNetProperties_v12_t.maxMultiRequestSize(to, 1);
        ncclNetProperties_v12_t.railId(to, UNDEFINED);
        ncclNetProperties_v12_t.planeId(to, UNDEFINED);
    }

    /** Writes the fields before the virtual devices. These fields have equal offsets in v9 to v12. */
    private void writeHead(int index, Abilities abilities, MemorySegment to) {
        to.set(ValueLayout.JAVA_LONG, ncclNetProperties_v9_t.name$offset(), name.address());
        to.set(ValueLayout.JAVA_LONG, ncclNetProperties_v9_t.pciPath$offset(), pciPath.address());
        ncclNetProperties_v9_t.guid(to, index);
        ncclNetProperties_v9_t.ptrSupport(to, abilities.memory());
        ncclNetProperties_v9_t.regIsGlobal(to, 0);
        ncclNetProperties_v9_t.forceFlush(to, 0);
        ncclNetProperties_v9_t.speed(to, speedMbps);
        ncclNetProperties_v9_t.port(to, 0);
        ncclNetProperties_v9_t.latency(to, 0);
        ncclNetProperties_v9_t.maxComms(to, MAX_COMMS);
        ncclNetProperties_v9_t.maxRecvs(to, abilities.maxRecvs);
        // The type HOST means that kernels do not use the network device. Only unpacking kernels use the network
        // device.
        ncclNetProperties_v9_t.netDeviceType(to, abilities.unpacks ? NetDeviceHandle.UNPACK : NetDeviceHandle.HOST);
        ncclNetProperties_v9_t.netDeviceVersion(to, abilities.unpacks ? UnpackDevice.Connection.VERSION : 0);
    }

    @Override
    public String toString() {
        return name.getString(0);
    }
}
