package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class StandardOutputTest {

    private final StringWriter err = new StringWriter();

    private int help(OutputStream file) {
        return Main.run(new Main.StandardOutput(file), new PrintWriter(err, true), "--help");
    }

    private static OutputStream broken(String why) {
        return new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                throw new IOException(why);
            }
        };
    }

    @Test
    void whatArrivesIsAllThereIs() {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        assertEquals(0, help(file));
        assertTrue(file.toString().startsWith("Usage: millrace "), file.toString());
        assertEquals("", err.toString());
    }

    @Test
    void aFullDiskIsAFailure() {
        assertEquals(1, help(broken("No space left on device")));
        assertEquals("millrace: the results could not be written: No space left on device" + System.lineSeparator(),
                err.toString());
    }

    @Test
    void aReaderThatHasSeenEnoughIsNone() {
        assertEquals(0, help(broken("Broken pipe")));
        assertEquals("", err.toString());
    }
}
