package org.millrace.plugin.net;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A network device, as NCCL's topology sees it.
 *
 * @param name      C string that is never freed, as NCCL keeps the pointer
 * @param speedMbps what the interface says, in Mbit/s
 */
public record NetDevice(MemorySegment name, int speedMbps) {

    /** What NCCL's own socket network says of an interface that does not tell its speed. */
    private static final int USUAL_SPEED_MBPS = 10_000;

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

    @Override
    public String toString() {
        return name.getString(0);
    }
}
