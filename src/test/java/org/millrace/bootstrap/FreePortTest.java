package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Ports for processes that start later. */
class FreePortTest {

    @Test
    void theSystemAssignsThePortToNoOtherProgram(@TempDir Path directory) throws Exception {
        Path range = Files.writeString(directory.resolve("range"), "32768\t60999\n");
        assertEquals(32768, FreePort.firstEphemeral(range));
        for (int i = 0; i < 100; i++) {
            int port = FreePort.find(11_000);
            assertTrue(port >= 10_000 && port < 11_000, "port " + port);
        }
    }

    @Test
    void withoutOtherPortsAnEphemeralOneIsReturned(@TempDir Path directory) throws Exception {
        assertEquals(0, FreePort.firstEphemeral(directory.resolve("absent")));
        assertTrue(FreePort.find(0) > 0);
        assertTrue(FreePort.find(1024) > 0);
    }
}
