package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class StartTest {

    private static final int JAVA_11 = 55;

    @Test
    void anOldJavaCanReadIt() throws IOException {
        try (DataInputStream file = new DataInputStream(Start.class.getResourceAsStream("Start.class"))) {
            assertEquals(0xCAFEBABE, file.readInt());
            assertEquals(0, file.readUnsignedShort());
            assertEquals(JAVA_11, file.readUnsignedShort());
        }
    }

    @Test
    void anOldJavaIsToldApart() {
        assertTrue(Start.complaint(17).startsWith("millrace: Java 22 or newer is needed, and this is 17 ("),
                Start.complaint(17));
        assertNull(Start.complaint(22));
    }
}
