package org.millrace.plugin.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AinicTest {

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({"'', '', false", "'', 0x15b3, false", "'', 0x1dd8, true", "0, 0x1dd8, false", "' 0', 0x1dd8, false",
            "1, 0x15b3, true", "1, '', true", "-1, 0x15b3, true"})
    void cardsAndVariable(String setting, String vendor, boolean expected) throws Exception {
        Path cards = directory.resolve("infiniband");
        if (!vendor.isEmpty()) {
            Files.createDirectories(cards.resolve("unreadable"));
            Files.writeString(Files.createDirectories(cards.resolve("ionic_0/device")).resolve("vendor"),
                    vendor + "\n");
        }
        assertEquals(expected, Ainic.mayBeUsed(setting, cards));
    }
}
