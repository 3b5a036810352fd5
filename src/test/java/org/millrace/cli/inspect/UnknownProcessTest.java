package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.cli.Run;

/** Commands that inspect processes, without any process to inspect. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class UnknownProcessTest {

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"why", "why --json", "why --watch 1ms", "ps", "top", "top --once", "dump", "metrics"})
    void aNamedProcessThatIsNotThereIsAnError(String command) {
        Run run = Run.of((command + " --directory " + directory + " 99999999").split(" "));
        assertEquals(1, run.status(), run::toString);
        assertEquals("", run.out(), run::toString);
        assertTrue(run.err().contains("none of the processes [99999999] has a trace in " + directory), run::toString);
    }

    @Test
    void withNoneNamedNothingIsAnAnswer() {
        for (String command : new String[] {"why", "ps"}) {
            Run run = Run.of(command, "--directory", directory.toString());
            assertEquals(0, run.status(), run::toString);
            assertTrue(run.out().startsWith("no process of this user has a trace in " + directory), run::toString);
        }
    }
}
