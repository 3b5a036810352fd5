package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The command line in a runtime with only those modules that the jlink line of pytorch.md names. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SmallRuntimeTest {

    @Test
    void whatNeedsAModuleThatIsNotThereSaysSoAndTheRestRuns() throws Exception {
        Matcher line = Pattern.compile("jlink --add-modules (\\S+)")
                .matcher(Files.readString(Path.of("src", "site", "markdown", "pytorch.md")));
        assertTrue(line.find());
        ProcessBuilder builder = ChildMain.builder(Main.class, "metrics", "--listen", "127.0.0.1:0");
        builder.environment().put("JDK_JAVA_OPTIONS", "--limit-modules " + line.group(1));
        Process process = builder.redirectErrorStream(true).start();
        try {
            String output = new String(process.getInputStream().readAllBytes());
            assertEquals(1, process.waitFor(), output);
            assertTrue(output.contains("lacks") && output.contains("jdk.httpserver"), output);
            assertTrue(!output.contains("\tat "), output);
        } finally {
            process.destroyForcibly();
        }
    }
}
