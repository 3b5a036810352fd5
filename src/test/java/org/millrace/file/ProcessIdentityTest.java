package org.millrace.file;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProcessIdentityTest {

    /**
     * The content of /proc/PID/task/THREAD/status for a thread of a killed process. The thread has not ended yet,
     * because it had no core.
     */
    @ParameterizedTest
    @CsvSource({"0000000000000100, true", "0000000000000000, false", "0000000000004200, false",
            "ffffffffffffffff, true"})
    void aThreadThatHasYetToEndShowsTheSignal(String pending, boolean killed) {
        assertEquals(killed, ProcessIdentity.isKilled(List.of("Name:\tC2 CompilerThre", "State:\tR (running)",
                "SigPnd:\t" + pending, "ShdPnd:\t0000000000000100")));
    }

    @Test
    void aRunningProcessIsNotDead() {
        assertFalse(ProcessIdentity.CURRENT.isProvablyDead());
    }
}
