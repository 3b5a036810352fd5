package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.millrace.config.Configuration;

class EngineOptionsTest {

    private static final String FIRST_STEP = "org.millrace.engine.firstStep";
    private static final String FIRST_WORK = "org.millrace.engine.firstWork";

    /** Other tests of the same JVM set them too. */
    @BeforeEach
    @AfterEach
    void clear() {
        System.clearProperty(FIRST_STEP);
        System.clearProperty(FIRST_WORK);
    }

    private static EngineOptions decided() {
        return EngineOptions.decide(Configuration.load(Map.of(), new Properties(), Map.of()),
                new Agreement(2, "host", 2, new int[] {0, 0}, 1, 1 << 20));
    }

    /** By which tests let counters wrap. */
    @Test
    void countersBeginWhereAPropertySays() {
        assertEquals(0, decided().firstStep());
        assertEquals(0, decided().firstWork());
        System.setProperty(FIRST_STEP, "-20");
        System.setProperty(FIRST_WORK, "4294901760");
        assertEquals(-20, decided().firstStep());
        assertEquals(0xffff0000, decided().firstWork());
    }
}
