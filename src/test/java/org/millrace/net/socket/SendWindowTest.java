package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;
import org.millrace.net.FrameHeader;

/** A late report about a completed frame must not release the frame that now uses the same slot. */
class SendWindowTest {

    private static final int SLOTS = 4;

    private final SendWindow window = new SendWindow(new Pieces(64, Integer.MAX_VALUE, SLOTS, SLOTS, 1024, 1, 1));

    private void send(long frame) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(8);
        window.add(header, ByteBuffer.allocate(8), 0);
        window.give();
        window.copied(frame, ByteBuffer.allocate(8), 0);
    }

    @Test
    void aLateReportOfACompleteFrameReleasesNoOtherFrame() {
        for (long frame = 0; frame < SLOTS; frame++) {
            send(frame);
            window.arrived(frame, 0);
        }
        window.retireWhole();
        send(SLOTS);
        window.copySent(0); // frame number SLOTS uses the slot of frame 0
        window.retireWhole();
        assertEquals(SLOTS, window.released());
        window.copySent(SLOTS);
        window.retireWhole();
        assertEquals(SLOTS + 1, window.released());
    }
}
