package org.millrace.net.connection;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteOrder;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * Linux's information about a TCP stream: {@code struct tcp_info} of {@code <linux/tcp.h>}. Java does not expose the
 * descriptors of its sockets. This class finds a socket's descriptor by the socket's addresses, among all descriptors
 * of the process. Used by one thread.
 */
final class TcpInfo {

    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    private static final int IPPROTO_TCP = 6;
    private static final int TCP_INFO = 11;
    private static final int AF_INET = 2;
    private static final int AF_INET6 = 10;
    private static final int LARGEST_ADDRESS = 128;
    private static final int PORT_OFFSET = 2;
    private static final int ADDRESS_OFFSET = 4;
    private static final int ADDRESS_V6_OFFSET = 8;
    private static final ValueLayout.OfShort PORT = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

    private static final int STATE_OFFSET = 0;
    private static final int TCP_CLOSE = 7;
    private static final int RETRANSMITS_OFFSET = 2;
    private static final int PROBES_OFFSET = 3;
    private static final int UNACKED_OFFSET = 24;
    private static final int LAST_DATA_RECEIVED_OFFSET = 52;
    private static final int LAST_ACK_RECEIVED_OFFSET = 56;
    private static final int BYTES_ACKED_OFFSET = 120;
    /**
     * Offset of a field that exists since Linux 4.2. Older releases of Linux and emulations of Linux leave zeros in the
     * field.
     */
    static final int SEGMENTS_IN_OFFSET = 140;
    private static final int NOT_SENT_OFFSET = 144;
    /**
     * Offset of the shortest round trip ({@code tcpi_min_rtt}). The field contains its type's maximum while the round
     * trip is unknown. This field and the number of data segments exist since Linux 4.6.
     */
    private static final int LEAST_ROUND_TRIP_OFFSET = 148;
    private static final int DATA_SEGMENTS_IN_OFFSET = 152;
    private static final int BYTES = 156;

    private final CFunction getsockopt = CFunction.named("getsockopt");
    private final CFunction getsockname = CFunction.named("getsockname");
    private final CFunction getpeername = CFunction.named("getpeername");
    /** Structure that the latest call of {@link #read} has filled. */
    final MemorySegment bytes;
    private final MemorySegment address;
    private final MemorySegment length;

    /** Allocates the memory that the system calls fill: the TCP information, a socket address, and its length. */
    TcpInfo(Arena arena) {
        bytes = arena.allocate(BYTES, Long.BYTES);
        address = arena.allocate(LARGEST_ADDRESS, Long.BYTES);
        length = arena.allocate(ValueLayout.JAVA_INT);
    }

    static boolean isKnown() {
        return Files.isDirectory(DESCRIPTORS) && System.getProperty("os.name").equals("Linux");
    }

    /** Finds the unknown descriptors of streams. */
    void find(Collection<TcpStream> streams) throws IOException {
        try (DirectoryStream<Path> all = Files.newDirectoryStream(DESCRIPTORS)) {
            for (Path each : all) {
                int descriptor = Integer.parseInt(each.getFileName().toString());
                InetSocketAddress remote = address(getpeername, descriptor);
                InetSocketAddress local = remote == null ? null : address(getsockname, descriptor);
                if (local != null) {
                    streams.stream()
                            .filter(stream -> stream.remote.equals(remote) && stream.local.equals(local))
                            .forEach(stream -> stream.descriptor = descriptor);
                }
            }
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
    }

    private @Nullable InetSocketAddress address(CFunction which, int descriptor) throws IOException {
        length.set(ValueLayout.JAVA_INT, 0, LARGEST_ADDRESS);
        if ((int) which.call(descriptor, address.address(), length.address()) != 0) {
            return null;
        }
        int family = address.get(ValueLayout.JAVA_SHORT, 0);
        if (family != AF_INET && family != AF_INET6) {
            return null;
        }
        byte[] bytes =
                address.asSlice(family == AF_INET ? ADDRESS_OFFSET : ADDRESS_V6_OFFSET, family == AF_INET ? 4 : 16)
                        .toArray(ValueLayout.JAVA_BYTE);
        return new InetSocketAddress(InetAddress.getByAddress(bytes),
                Short.toUnsignedInt(address.get(PORT, PORT_OFFSET)));
    }

    /**
     * Reads the operating system's information about a descriptor. Returns false if the descriptor belongs to no TCP
     * stream, or to a closed stream.
     */
    boolean read(int descriptor) {
        bytes.fill((byte) 0);
        length.set(ValueLayout.JAVA_INT, 0, BYTES);
        return (int) getsockopt.call(descriptor, IPPROTO_TCP, TCP_INFO, bytes.address(), length.address()) == 0
                && bytes.get(ValueLayout.JAVA_BYTE, STATE_OFFSET) != TCP_CLOSE;
    }

    /**
     * Returns the number of segments that the operating system has received, with or without data, including discarded
     * segments.
     */
    int segmentsIn() {
        return number(SEGMENTS_IN_OFFSET);
    }

    /** Returns whether this side has unacknowledged data and retransmits it. */
    boolean sendsAgain() {
        return number(UNACKED_OFFSET) > 0 && bytes.get(ValueLayout.JAVA_BYTE, RETRANSMITS_OFFSET) != 0;
    }

    /**
     * Returns a number that grows with each answer of the peer to sent data: the acknowledged bytes plus the received
     * segments without data. A peer that has no room for the data answers by segments without data. Data that the peer
     * retransmits does not count.
     */
    long answers() {
        return bytes.get(ValueLayout.JAVA_LONG, BYTES_ACKED_OFFSET) + segmentsIn() - number(DATA_SEGMENTS_IN_OFFSET);
    }

    /**
     * Returns the time since the peer's newest segment, in nanoseconds. Returns 0 if fewer than two keep-alive probes
     * are unanswered, or if this side has data in flight or to send. While data waits for a peer with a closed window,
     * this host sends window probes instead of keep-alive probes, see {@link TcpStream}.
     */
    long askedNanos() {
        boolean asked = number(UNACKED_OFFSET) == 0 && bytes.get(ValueLayout.JAVA_BYTE, PROBES_OFFSET) > 1
                && number(NOT_SENT_OFFSET) == 0;
        return asked
                ? TimeUnit.MILLISECONDS
                        .toNanos(Math.min(number(LAST_ACK_RECEIVED_OFFSET), number(LAST_DATA_RECEIVED_OFFSET)))
                : 0;
    }

    /** Returns the shortest round trip of the last minutes, in microseconds; 0 or less if unknown. */
    int leastRoundTripMicros() {
        return number(LEAST_ROUND_TRIP_OFFSET);
    }

    private int number(int offset) {
        return bytes.get(ValueLayout.JAVA_INT, offset);
    }
}
