package org.millrace.bench.frames;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;

/** The comparators of frames: a TCP connection or a pair of rings in C, with all ends in this process. */
public final class FramesInC {

    /** Size of two rings as in {@code frames.h}, in bytes. */
    private static final long RINGS_BYTES = 2 * (4096 + (2L << 20));
    /** Index in the arguments of a connection's two ends, as in {@code frames.h}. */
    private static final long SOCKETS = 2;

    private final CLibrary c;
    private final boolean tcp;
    private final MemorySegment rings = Arena.global().allocate(RINGS_BYTES, 4096);
    private final MemorySegment sockets = Arena.global().allocate(ValueLayout.JAVA_LONG, SOCKETS + 2);

    /**
     * Connects.
     *
     * @param c   the comparators
     * @param tcp whether frames travel over TCP, and not through rings
     */
    public FramesInC(CLibrary c, boolean tcp) {
        this.c = c;
        this.tcp = tcp;
        if (tcp && c.loop("frames_tcp_open", rings, sockets).run(1) == Loop.LOST) {
            throw new IllegalStateException("C cannot connect over the loopback");
        }
    }

    /**
     * Returns one side.
     *
     * @param role    {@code ping} and {@code echo} are the sides of round trips, {@code post} and {@code take} of
     *                streams
     * @param payload memory of the payload
     * @param bytes   size of the payload
     * @return the loop
     */
    public Loop loop(String role, MemorySegment payload, long bytes) {
        MemorySegment arguments = Arena.global()
                .allocateFrom(ValueLayout.JAVA_LONG, bytes, payload.address(),
                        sockets.getAtIndex(ValueLayout.JAVA_LONG, SOCKETS),
                        sockets.getAtIndex(ValueLayout.JAVA_LONG, SOCKETS + 1));
        return c.loop("frames_" + (tcp ? "tcp_" : "shm_") + role, rings, arguments);
    }
}
