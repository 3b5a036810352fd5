package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class LongLinesTest {

    private final List<String> told = new ArrayList<>();
    private final LongLines lines = new LongLines(told::add);

    /** Returns a stream with the given round-trip time in the operating system's statistics. */
    private static TcpStream stream(String host, int micros, boolean carriesFrames) throws Exception {
        try (SocketChannel channel = SocketChannel.open(); Arena arena = Arena.ofConfined()) {
            TcpStream stream = new TcpStream(channel, new InetSocketAddress("10.0.0.1", 1),
                    new InetSocketAddress(host, 2), "a process", carriesFrames);
            TcpInfo info = new TcpInfo(arena);
            info.bytes.set(ValueLayout.JAVA_INT, 148, micros);
            stream.update(info, 0);
            return stream;
        }
    }

    @Test
    void aLongLineIsToldOfOnce() throws Exception {
        for (int look = 0; look < 3; look++) {
            lines.look(List.of(stream("10.0.0.2", 20_000, true), stream("10.0.0.2", 21_000, true)));
        }
        assertEquals(List.of("the way to 10.0.0.2 and back takes 20.0 ms, and a connection has no more under way than"
                + " NCCL_BUFFSIZE: each MiB of it brings 52 MB/s at most. NCCL_BUFFSIZE=32M, the same on all ranks,"
                + " brings 1678 MB/s"), told);
    }

    @Test
    void theMostIsSixtyFourMebibytes() throws Exception {
        lines.look(List.of(stream("10.0.0.3", 200_000, true)));
        assertEquals(true, told.getFirst().contains("NCCL_BUFFSIZE=64M,"), told.getFirst());
    }

    /**
     * Logs no message for a short round trip, for statistics without a round-trip time, and for a stream without
     * frames.
     */
    @Test
    void nothingElseIsToldOf() throws Exception {
        lines.look(List.of(stream("10.0.0.4", LongLines.LONG_MICROS - 1, true), stream("10.0.0.5", 0, true),
                stream("10.0.0.6", -1, true), stream("10.0.0.7", 50_000, false)));
        assertEquals(List.of(), told);
    }
}
