package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** {@code top} on a terminal, which {@code script} provides. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class TerminalTest {

    @TempDir
    private Path directory;

    private Process script;

    @BeforeEach
    void needsScript() {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/script")), "there is no script");
    }

    @AfterEach
    void end() {
        if (script != null) {
            script.descendants().forEach(ProcessHandle::destroyForcibly);
            script.destroyForcibly();
        }
    }

    /** Starts {@code top}, followed by another shell command, and presses a key after the first output. */
    private BufferedReader press(int key, String behind) throws IOException {
        String top = String.join(" ",
                ChildMain.builder(Main.class, "top", "--interval", "0.05", "--directory", directory.toString())
                        .command());
        // A job that a script runs in the background ignores SIGINT. Child processes inherit this setting.
        script = new ProcessBuilder("/usr/bin/env", "--default-signal=INT", "/usr/bin/script", "-qefc", top + behind,
                "/dev/null").redirectErrorStream(true).start();
        BufferedReader out = script.inputReader();
        assertNotNull(ChildMain.readUntil(out, "no process of this user"));
        script.getOutputStream().write(key);
        script.getOutputStream().flush();
        return out;
    }

    @Test
    void qEndsItAndTheTerminalIsAsItWas() throws Exception {
        BufferedReader out = press('q', " && stty -a");
        String modes = ChildMain.readUntil(out, "icanon");
        assertTrue(modes.contains(" icanon") && modes.contains(" echo "), modes);
        out.transferTo(Writer.nullWriter());
        assertEquals(0, script.waitFor());
    }

    @Test
    void behindCtrlCALineEnds() throws Exception {
        StringBuilder rest = new StringBuilder();
        BufferedReader out = press(3, "");
        for (int next = out.read(); next >= 0; next = out.read()) {
            rest.append((char) next);
        }
        assertTrue(rest.toString().endsWith("\r\n"), rest::toString);
    }
}
