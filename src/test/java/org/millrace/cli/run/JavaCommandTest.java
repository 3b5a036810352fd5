package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class JavaCommandTest {

    private final int cores = Runtime.getRuntime().availableProcessors();
    private String before;

    /** Clears the property of {@link JavaCommand#OPTIONS}, because another test may have set this property. */
    @BeforeEach
    void clear() {
        before = System.getProperty(JavaCommand.OPTIONS, "");
        System.setProperty(JavaCommand.OPTIONS, "");
    }

    @AfterEach
    void restore() {
        System.setProperty(JavaCommand.OPTIONS, before);
    }

    @Test
    void ranksThatAreMoreThanCoresAreCollectedByNoThreadsOfTheirOwn() {
        assertEquals(JavaCommand.of(List.of("perf")), JavaCommand.ofRank(cores, List.of("perf")));
        List<String> crowded = JavaCommand.ofRank(cores + 1, List.of("perf"));
        assertEquals(1, crowded.stream().filter(option -> option.equals("-XX:+UseSerialGC")).count(),
                crowded.toString());
        assertTrue(crowded.indexOf("-XX:+UseSerialGC") < crowded.indexOf("perf"), crowded.toString());
    }

    /** The JVM refuses options for two collectors, so ranks keep the user's collector. */
    @Test
    void whatTheUserHasChosenStays() {
        System.setProperty(JavaCommand.OPTIONS, "-XX:+UseParallelGC");
        assertEquals(JavaCommand.of(List.of("perf")), JavaCommand.ofRank(cores + 1, List.of("perf")));
    }
}
