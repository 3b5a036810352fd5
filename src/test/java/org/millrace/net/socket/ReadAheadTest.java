package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.FrameHeader;

/** Number of system calls that read from a stream. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ReadAheadTest {

    /**
     * After a read has emptied the stream, the next {@code poll} reads nothing. It returns no frame, although the
     * second frame is already in the socket.
     */
    @Test
    void aStreamThatWasReadDryIsNotReadAgainByTheNextCall() {
        try (SocketNetwork network = new SocketNetwork(SocketOptions.defaults());
                Connected ends = Connected.make(network, network)) {
            FrameHeader header = new FrameHeader();
            for (int frame = 0; frame < 100; frame++) {
                header.word(0, frame);
                send(ends, header);
                assertEquals(frame, ends.nextHeader().word(0));
                header.word(0, ++frame);
                send(ends, header);
                ends.receiver().accept(null, 0);
                assertNull(ends.receiver().poll(), "frame " + frame);
                assertEquals(frame, ends.nextHeader().word(0));
                ends.receiver().accept(null, 0);
            }
        }
    }

    private static void send(Connected ends, FrameHeader header) {
        assertTrue(ends.sender().offer(header, null, 0));
        ends.until(() -> ends.sender().progress() == 0);
    }
}
