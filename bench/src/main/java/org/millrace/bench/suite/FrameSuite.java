package org.millrace.bench.suite;

import java.util.List;
import org.millrace.bench.frames.FrameLoop;
import org.millrace.bench.frames.FramePipe;
import org.millrace.bench.frames.FrameStream;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.shm.ShmUnavailableException;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** Frames between two threads. */
public final class FrameSuite implements Suite {

    private static final String SOCKET = "socket";
    private static final String SHM = "shm";
    private static final List<Integer> SIZES = List.of(0, 4 << 10, 64 << 10, 1 << 20);
    private static final List<Integer> ALL_SIZES =
            List.of(0, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20);
    /** Payload sizes that show the cost of a frame itself, and the cost of its bytes. */
    private static final List<Integer> STREAM_SIZES = List.of(0, 1 << 20);

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
        return "Two spinning threads, Millrace's networks. Round trip: a frame there and one back. Stream: frames "
                + "one way, as many under way as the network "
                + "takes, all with the same payload memory. Shared memory: rings read and written with memory "
                + "segments. C moves the "
                + "same bytes, 64 bytes of header and the payload, over a TCP connection, up to 16 frames with one "
                + "call, or through rings of the same length, "
                + "without checks, frames in flight and ends of connections. In a stream of short frames the side "
                + "that is faster waits for the other frame by "
                + "frame, and its looks slow the other: there C can be the slower one.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(SOCKET, SHM);
    }

    @Override
    public void run(String variant, Bench bench) {
        if (!bench.cores().two()) {
            bench.note("frames need two cores: with one, each would cost time slices of the scheduler");
            return;
        }
        try (Network network = network(variant);
                FramePipe there = FramePipe.open(network);
                FramePipe back = FramePipe.open(network);
                Partner partner = new Partner(bench.cores())) {
            FramesInC c = new FramesInC(bench.c(), variant.equals(SOCKET));
            boolean full = bench.effort().full();
            for (int bytes : full ? ALL_SIZES : SIZES) {
                FrameLoop first = new FrameLoop(network, there.sender(), back.receiver(), bytes);
                Loop java = partner.with(first, first.second(network, back.sender(), there.receiver()));
                Loop inC = partner.with(c.loop("ping", FrameStream.payload(bytes), bytes),
                        c.loop("echo", FrameStream.payload(bytes), bytes));
                bench.measure(
                        Pair.bare("roundtrip." + bytes, "Round trip", title(bytes), java, inC).withBytes(2L * bytes));
            }
            for (int bytes : full ? ALL_SIZES : STREAM_SIZES) {
                FrameStream stream = new FrameStream();
                Loop java = partner.with(stream.sending(network, there.sender(), FrameStream.payload(bytes), bytes),
                        stream.receiving(network, there.receiver(), FrameStream.payload(bytes)));
                Loop inC = partner.with(c.loop("post", FrameStream.payload(bytes), bytes),
                        c.loop("take", FrameStream.payload(bytes), bytes));
                bench.measure(Pair.bare("stream." + bytes, "Stream", title(bytes), java, inC).withBytes(bytes));
            }
        } catch (LinkageError | ShmUnavailableException e) {
            bench.note("frames over " + variant + " were left out, this runtime lacks what they need: " + e);
        }
    }

    private static Network network(String variant) {
        return variant.equals(SOCKET) ? new SocketNetwork(SocketOptions.defaults())
                : new ShmNetwork(ShmOptions.defaults());
    }

    private static String title(int bytes) {
        if (bytes == 0) {
            return "no payload";
        }
        return bytes < 1 << 10 ? bytes + " bytes" : bytes < 1 << 20 ? (bytes >> 10) + " KiB" : (bytes >> 20) + " MiB";
    }
}
