package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RankOutputTest {

    private final ByteArrayOutputStream printed = new ByteArrayOutputStream();
    private final CommandRanks.RankOutput output = new CommandRanks.RankOutput(printed);

    private void pass(int rank, byte[] bytes) {
        output.pass(rank, new ByteArrayInputStream(bytes), unwritten -> fail(unwritten));
    }

    @Test
    void everyLineHasItsRankAndEveryByteArrives() {
        byte[] written = "a\n\nb\r\n10 %\r20 %\rlast".getBytes(StandardCharsets.US_ASCII);
        pass(3, written);
        assertEquals("[rank 3] a\n[rank 3] \n[rank 3] b\n[rank 3] 10 %\n[rank 3] 20 %\n[rank 3] last\n",
                printed.toString(StandardCharsets.US_ASCII));
        printed.reset();
        pass(0, new byte[] {(byte) 0xff, 0, (byte) 0xc3, (byte) 0xa9});
        assertArrayEquals(new byte[] {'[', 'r', 'a', 'n', 'k', ' ', '0', ']', ' ', (byte) 0xff, 0, (byte) 0xc3,
                (byte) 0xa9, '\n'}, printed.toByteArray());
    }

    @Test
    void aLineWithoutEndIsDivided() {
        byte[] endless = "x".repeat(3 << 20).getBytes(StandardCharsets.US_ASCII);
        pass(1, endless);
        List<String> lines = printed.toString(StandardCharsets.US_ASCII).lines().toList();
        assertEquals(3, lines.size());
        assertTrue(lines.stream().allMatch(line -> line.length() == (1 << 20) + "[rank 1] ".length()));
    }

    @Test
    void linesOfManyRanksStayWhole() throws InterruptedException {
        List<Thread> ranks = new ArrayList<>();
        for (int rank = 0; rank < 4; rank++) {
            int number = rank;
            byte[] text = ("line of " + rank + "\n").repeat(5000).getBytes(StandardCharsets.US_ASCII);
            ranks.add(Thread.ofPlatform().start(() -> pass(number, text)));
        }
        for (Thread rank : ranks) {
            rank.join();
        }
        List<String> lines = printed.toString(StandardCharsets.US_ASCII).lines().toList();
        assertEquals(20_000, lines.size());
        assertTrue(lines.stream().allMatch(line -> line.matches("\\[rank (\\d)\\] line of \\1")));
    }

    /**
     * Even if the run cannot write a rank's output, it reads the output to its end. Otherwise the rank would wait for a
     * reader, or SIGPIPE would end the rank.
     */
    @Test
    void outputThatCannotBeWrittenIsReportedOnceAndReadToItsEnd() {
        CommandRanks.RankOutput closed = new CommandRanks.RankOutput(new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                throw new IOException("Broken pipe");
            }
        });
        ByteArrayInputStream from =
                new ByteArrayInputStream("line\n".repeat(100_000).getBytes(StandardCharsets.US_ASCII));
        List<String> reported = new ArrayList<>();
        closed.pass(0, from, unwritten -> reported.add(unwritten.getMessage()));
        assertEquals(List.of("Broken pipe"), reported);
        assertEquals(0, from.available());
    }
}
