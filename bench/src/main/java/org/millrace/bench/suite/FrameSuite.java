package org.millrace.bench.suite;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.millrace.bench.frames.FrameLoop;
import org.millrace.bench.frames.FramePipe;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;
import org.millrace.net.Network;
import org.millrace.net.shm.RingAccess;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.shm.ShmUnavailableException;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** Frames between two threads. */
public final class FrameSuite implements Suite {

    private static final String SOCKET = "socket";
    private static final String SHM = "shm";
    private static final String CHRONICLE = "shm-chronicle";
    private static final List<Integer> SIZES = List.of(0, 4 << 10, 64 << 10, 1 << 20);
    private static final List<Integer> ALL_SIZES = List.of(0, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20);
    /** Two rings as {@code frames.c} has them. */
    private static final long RINGS_BYTES = 2 * (4096 + (2L << 20));
    private static final long SOCKETS = 2;

    @Override
    public String name() {
        return "frames";
    }

    @Override
    public String title() {
        return "Frames over TCP and shared memory";
    }

    @Override
    public String description() {
        return "A frame there and one back, two spinning threads, Millrace's networks. Shared memory: rings read and written with memory segments, and with "
                + "Chronicle Bytes. C moves the same bytes, 64 bytes of header and the payload, over a TCP connection or through rings of the same length, "
                + "without checks, frames in flight and ends of connections.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(SOCKET, SHM, CHRONICLE);
    }

    @Override
    public void run(String variant, Bench bench) {
        if (!bench.cores().two()) {
            bench.note("frames need two cores: with one, each would cost time slices of the scheduler");
            return;
        }
        try (Network network = network(variant); FramePipe there = FramePipe.open(network); FramePipe back = FramePipe.open(network);
                Partner partner = new Partner(bench.cores())) {
            String kind = variant.equals(SOCKET) ? "tcp" : "shm";
            MemorySegment rings = Arena.global().allocate(RINGS_BYTES, 4096);
            MemorySegment sockets = Arena.global().allocate(ValueLayout.JAVA_LONG, SOCKETS + 2);
            if (kind.equals("tcp") && bench.c().isPresent() && bench.c().loop("frames_tcp_open", rings, sockets).run(1) == Loop.LOST) {
                throw new IllegalStateException("C cannot connect over the loopback");
            }
            for (int bytes : bench.effort().full() ? ALL_SIZES : SIZES) {
                Loop java = partner.with(new FrameLoop(network, there.sender(), back.receiver(), bytes, true),
                        new FrameLoop(network, back.sender(), there.receiver(), bytes, false));
                Loop c = partner.with(side(kind, "ping", rings, sockets, bytes, bench), side(kind, "echo", rings, sockets, bytes, bench));
                String title = bytes == 0 ? "no payload" : bytes < 1 << 20 ? bytes / 1024.0 + " KiB" : (bytes >> 20) + " MiB";
                bench.measure(Pair.bare("roundtrip." + bytes, "Round trip", title, java, c).withBytes(2L * bytes));
            }
        } catch (LinkageError | ShmUnavailableException e) {
            bench.note("frames over " + variant + " were left out, this runtime lacks what they need: " + e);
        }
    }

    private static Network network(String variant) {
        return switch (variant) {
            case SOCKET -> new SocketNetwork(SocketOptions.defaults());
            case SHM -> new ShmNetwork(ShmOptions.defaults());
            default -> new ShmNetwork(ShmOptions.defaults().withAccess(RingAccess.CHRONICLE));
        };
    }

    private static Loop side(String kind, String role, MemorySegment rings, MemorySegment sockets, int bytes, Bench bench) {
        MemorySegment payload = Arena.global().allocate(Math.max(bytes, 64), 4096);
        MemorySegment arguments = Arena.global().allocateFrom(ValueLayout.JAVA_LONG, bytes, payload.address(),
                sockets.getAtIndex(ValueLayout.JAVA_LONG, SOCKETS), sockets.getAtIndex(ValueLayout.JAVA_LONG, SOCKETS + 1));
        return bench.c().loop("frames_" + kind + "_" + role, rings, arguments);
    }
}
