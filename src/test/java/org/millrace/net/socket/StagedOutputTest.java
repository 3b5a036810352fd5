package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;
import org.millrace.net.FrameHeader;

class StagedOutputTest {

    private static final int FRAMES = 16;

    /**
     * A frame whose header is sent, and whose payload is not, leaves its header's room to payloads; when it is complete
     * one more frame may come, and there is no room for that one's header beside them.
     */
    @Test
    void aFrameThatEndsLateTakesNoRoomFromTheHeadersOfOthers() {
        StagedOutput staged = new StagedOutput(FRAMES);
        ByteBuffer memory = ByteBuffer.allocateDirect(1 << 20);
        staged.moved(HeaderFormat.BYTES + staged.add(new FrameHeader(), memory, 0, 1 << 20, FRAMES));
        for (int frame = 1; frame < FRAMES; frame++) {
            staged.add(new FrameHeader(), memory, 0, 64 << 10, FRAMES - frame);
        }
        for (int frame = 0; frame < 3; frame++) { // each goes into the window in the place of one that ended
            long before = staged.end();
            int copied = staged.add(new FrameHeader(), memory, 0, 64 << 10, 1);
            assertTrue(copied >= 0, copied + " bytes were copied");
            assertEquals(before + HeaderFormat.BYTES + copied, staged.end());
        }
    }
}
