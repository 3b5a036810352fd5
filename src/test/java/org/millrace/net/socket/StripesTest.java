package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class StripesTest {

    @Test
    void partsCoverEveryPayloadOnceAndInOrder() {
        Random random = new Random(1);
        for (int round = 0; round < 10_000; round++) {
            Stripes stripes = new Stripes(1 + random.nextInt(SocketOptions.MAX_STREAMS), 1 + random.nextInt(100_000));
            int length = switch (round % 3) {
                case 0 -> stripes.threshold() - 1 + random.nextInt(3);
                case 1 -> random.nextInt(1 << 20);
                default -> HeaderFormat.MAX_PAYLOAD_BYTES - random.nextInt(10_000);
            };
            int at = 0;
            for (int stream = 0; stream < stripes.streams(); stream++) {
                int start = stripes.start(length, stream);
                int end = stripes.end(length, stream);
                assertTrue(start <= end && (start == at || start == end),
                        () -> "round, seed 1: " + stripes + " for " + length);
                at = Math.max(at, end);
            }
            assertEquals(length, at, () -> stripes + ", seed 1");
            assertEquals(
                    length < stripes.threshold() || stripes.streams() == 1 || length <= HeaderFormat.PART_ALIGNMENT,
                    stripes.end(length, 0) == length);
        }
    }

    @Test
    void rangesAreChecked() {
        assertThrows(IllegalArgumentException.class, () -> new Stripes(0, 1));
        assertThrows(IllegalArgumentException.class, () -> new Stripes(17, 1));
        assertThrows(IllegalArgumentException.class, () -> new Stripes(1, 0));
        assertThrows(IllegalArgumentException.class, () -> SocketOptions.defaults().withStreams(17, 1));
        assertThrows(IllegalArgumentException.class, () -> SocketOptions.defaults().withFramesInFlight(0));
    }
}
