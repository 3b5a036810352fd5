package org.millrace.bench;

import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.frames.FrameLoop;
import org.millrace.bench.frames.FramePipe;
import org.millrace.bench.frames.FramesInC;
import org.millrace.bench.frames.FrameStream;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.Param;

/**
 * Frames between two spinning threads over Millrace's networks. C moves the same bytes, 64 bytes of header and the
 * payload. Over TCP it moves up to 16 frames with one call, over shared memory it uses rings of the same length. It
 * omits checks, frames in flight and ends of connections. In a stream of short frames the faster side waits for the
 * other frame by frame, and its polls slow the other side: there C can be the slower one.
 */
@OperationsPerInvocation(FrameBenchmark.FRAMES)
public class FrameBenchmark extends LoopBenchmark {

    /** Number of frames or round trips of a batch. */
    static final int FRAMES = 500;

    /** Network: TCP or shared memory. */
    @Param({"socket", "shm"})
    public String network;

    /** A frame there and one back, or frames one way with as many in flight as the network accepts. */
    @Param({"roundtrip", "stream"})
    public String shape;

    /** Payload of a frame. */
    @Param({"0", "4096", "65536", "1048576"})
    public int bytes;

    /**
     * Maximum number of frames of a stream in flight, 0 for no limit except the network's. C has no limit of its own.
     */
    @Param("0")
    public int inFlight;

    @Override
    int batch() {
        return FRAMES;
    }

    @Override
    Loop loop(CLibrary c) {
        boolean stream = shape.equals("stream");
        Partner partner = partner();
        if (c != null && inFlight > 0) {
            throw new IllegalStateException("C has no limit: -p side=JAVA");
        }
        if (c != null) {
            FramesInC frames = new FramesInC(c, network.equals("socket"));
            return partner.with(frames.loop(stream ? "post" : "ping", FrameStream.payload(bytes), bytes),
                    frames.loop(stream ? "take" : "echo", FrameStream.payload(bytes), bytes));
        }
        Network over = opened(network.equals("socket") ? new SocketNetwork(SocketOptions.defaults())
                : new ShmNetwork(ShmOptions.defaults()));
        FramePipe there = opened(FramePipe.open(over));
        if (stream) {
            FrameStream frames = new FrameStream();
            return partner.with(frames.sending(over, there.sender(), FrameStream.payload(bytes), bytes, inFlight),
                    frames.receiving(over, there.receiver(), FrameStream.payload(bytes)));
        }
        FramePipe back = opened(FramePipe.open(over));
        FrameLoop first = new FrameLoop(over, there.sender(), back.receiver(), bytes);
        return partner.with(first, first.second(over, back.sender(), there.receiver()));
    }
}
