package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.SilentLink;
import org.millrace.net.connection.TcpStreams;

/** The ends of a connection inform each other when their links become silent, and when the silence is over. */
class SilenceReportTest {

    private static final int THRESHOLD = 1 << 20;
    private static final int ENOUGH_CALLS = 4 * StreamSet.WATCH_INTERVAL;

    @AfterEach
    void tellNobody() {
        TcpStreams.silent(null);
    }

    private static void turn(RelayedRails rails) throws Exception {
        for (int i = 0; i < ENOUGH_CALLS; i++) {
            rails.sender.progress();
            rails.receiver.poll();
            rails.carry(0, Integer.MAX_VALUE);
        }
    }

    private static List<SilentLink> reports() {
        return TcpStreams.reports().stream().map(TcpStreams.Report::link).toList();
    }

    @Test
    void bothEndsAreToldAndThatItIsOver() throws Exception {
        SilentLink link = new SilentLink(InetAddress.getByName("10.77.0.2"), InetAddress.getByName("10.77.0.3"), "b2");
        try (var rails = new RelayedRails(1, THRESHOLD, 8); Arena arena = Arena.ofShared()) {
            turn(rails);
            assertEquals(List.of(), reports());
            TcpStreams.silent(link);
            turn(rails);
            assertEquals(List.of(link, link), reports());
            TcpStreams.silent(null);
            turn(rails);
            assertEquals(List.of(), reports());
            TcpStreams.silent(link);
            turn(rails);
            rails.sender.offer(new FrameHeader(), null, 0);
            turn(rails);
            rails.receiver.accept(rails.register(arena.allocate(1)), 0);
            turn(rails);
            assertEquals(1, rails.receiver.framesCompleted());
        }
        assertEquals(List.of(), reports());
    }
}
