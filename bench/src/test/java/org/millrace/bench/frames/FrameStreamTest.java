package org.millrace.bench.frames;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** The payloads of a stream arrive complete and at the right place, in Java and in C. */
class FrameStreamTest {

    /**
     * Number of streams. The test checks only a stream's last payload. With this many short streams, that payload
     * sometimes wraps around the ring's end.
     */
    private static final int STREAMS = 10;
    private static final int COUNT = 7;
    /** Zero bytes, less than a line, an odd length, more than a piece of a ring, and several pieces with a rest. */
    private static final int[] SIZES = {0, 4, 4099, 200_000, (1 << 20) + 72};

    private final Random random = new Random(7);
    private Partner partner;

    @BeforeEach
    void start() {
        partner = new Partner(Cores.ofThisProcess());
    }

    @AfterEach
    void stop() {
        partner.close();
    }

    @Test
    void overTcp() {
        try (Network network = new SocketNetwork(SocketOptions.defaults())) {
            stream(network);
        }
    }

    @Test
    void overSharedMemory() {
        try (Network network = new ShmNetwork(ShmOptions.defaults())) {
            stream(network);
        }
    }

    private void stream(Network network) {
        try (FramePipe pipe = FramePipe.open(network)) {
            for (int bytes : SIZES) {
                MemorySegment from = noise(bytes);
                MemorySegment to = FrameStream.payload(bytes);
                FrameStream stream = new FrameStream();
                for (int limit = 0; limit < 2; limit++) {
                    stream(partner.with(stream.sending(network, pipe.sender(), from, bytes, limit),
                            stream.receiving(network, pipe.receiver(), to)), from, to, bytes);
                }
                assertEquals(pipe.sender().framesCompleted(), pipe.receiver().framesCompleted());
            }
        }
    }

    @Test
    void roundTripsOverTcp() {
        try (Network network = new SocketNetwork(SocketOptions.defaults())) {
            roundTrips(network);
        }
    }

    @Test
    void roundTripsOverSharedMemory() {
        try (Network network = new ShmNetwork(ShmOptions.defaults())) {
            roundTrips(network);
        }
    }

    private void roundTrips(Network network) {
        try (FramePipe there = FramePipe.open(network); FramePipe back = FramePipe.open(network)) {
            for (int bytes : SIZES) {
                FrameLoop first = new FrameLoop(network, there.sender(), back.receiver(), bytes);
                Loop loop = partner.with(first, first.second(network, back.sender(), there.receiver()));
                assertEquals(COUNT, loop.run(COUNT), bytes + " bytes");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void inC(boolean tcp) {
        assumeTrue(CompiledLibrary.version() != null, "no C compiler here: C's frames were not tested");
        FramesInC c = new FramesInC(CLibrary.ofThisJvm(), tcp);
        for (int bytes : SIZES) {
            MemorySegment there = noise(bytes);
            MemorySegment back = FrameStream.payload(bytes);
            stream(partner.with(c.loop("post", there, bytes), c.loop("take", back, bytes)), there, back, bytes);
            assertEquals(COUNT,
                    partner.with(c.loop("ping", there, bytes), c.loop("echo", noise(bytes), bytes)).run(COUNT));
            assertSame(back, there, bytes);
        }
    }

    private static void stream(Loop loop, MemorySegment from, MemorySegment to, int bytes) {
        for (int i = 0; i < STREAMS; i++) {
            to.fill((byte) 0);
            assertEquals(COUNT, loop.run(COUNT));
            assertSame(from, to, bytes);
        }
    }

    private MemorySegment noise(int bytes) {
        MemorySegment memory = FrameStream.payload(bytes);
        byte[] content = new byte[bytes];
        random.nextBytes(content);
        MemorySegment.copy(content, 0, memory, ValueLayout.JAVA_BYTE, 0, bytes);
        return memory;
    }

    private static void assertSame(MemorySegment expected, MemorySegment actual, int bytes) {
        assertArrayEquals(expected.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE),
                actual.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE), bytes + " bytes");
    }
}
