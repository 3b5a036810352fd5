package org.millrace.cli;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Predicate;

/**
 * Where the ranks' lines go, one at a time, each with its rank before it. Bytes are not decoded: what a rank writes
 * arrives, whatever its encoding. Safe for any thread.
 */
final class RankOutput {

    /** One that is longer is divided: memory is bounded. */
    private static final int LONGEST_LINE = 1 << 20;

    private final OutputStream to;

    RankOutput(OutputStream to) {
        this.to = to;
    }

    /**
     * Passes on what a rank writes, until it ends. A carriage return ends a line too: progress is seen as it comes.
     *
     * @param taken lines that are not passed on
     * @throws UncheckedIOException if they cannot be written where they should go
     */
    void pass(int rank, InputStream from, Predicate<String> taken) {
        byte[] prefix = ("[rank " + rank + "] ").getBytes(StandardCharsets.US_ASCII);
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        try (InputStream bytes = new BufferedInputStream(from)) {
            boolean returned = false;
            for (int next = read(bytes); next >= 0; next = read(bytes)) {
                boolean end = next == '\r' || next == '\n';
                if (end && !(next == '\n' && returned)) {
                    write(prefix, line, taken);
                } else if (!end) {
                    line.write(next);
                    if (line.size() == LONGEST_LINE) {
                        write(prefix, line, taken);
                    }
                }
                returned = next == '\r';
            }
            if (line.size() > 0) {
                write(prefix, line, taken);
            }
        } catch (IOException unwritten) {
            throw new UncheckedIOException(unwritten);
        }
    }

    /** What cannot be read any more has ended. */
    private static int read(InputStream bytes) {
        try {
            return bytes.read();
        } catch (IOException closed) {
            return -1;
        }
    }

    private void write(byte[] prefix, ByteArrayOutputStream line, Predicate<String> taken) throws IOException {
        if (!taken.test(line.toString(StandardCharsets.ISO_8859_1))) {
            byte[] whole = new byte[prefix.length + line.size() + 1];
            System.arraycopy(prefix, 0, whole, 0, prefix.length);
            System.arraycopy(line.toByteArray(), 0, whole, prefix.length, line.size());
            whole[whole.length - 1] = '\n';
            synchronized (this) {
                to.write(whole);
                to.flush();
            }
        }
        line.reset();
    }
}
