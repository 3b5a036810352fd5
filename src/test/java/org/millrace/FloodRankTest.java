package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.ByteArrayOutputStream;
import java.nio.file.Path;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The rank program of {@code bench/flood.sh}. The script starts the program directly from its source file. */
class FloodRankTest {

    @Test
    void itCompiles(@TempDir Path classes) {
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int status = ToolProvider.getSystemJavaCompiler()
                .run(null, null, errors, "-proc:none", "-d", classes.toString(), "-cp",
                        System.getProperty("java.class.path"), Path.of("bench", "flood", "FloodRank.java").toString());
        assertEquals(0, status, errors::toString);
    }
}
