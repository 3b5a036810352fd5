package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class WhyCommandTest {

    @Test
    void oneProcessIsOne() {
        assertEquals("Nothing stands still, of 1 process that runs and 2 that have ended.",
                WhyCommand.nothingStands(1, 2));
        assertEquals("Nothing stands still, of 2 processes that run and 1 that has ended.",
                WhyCommand.nothingStands(2, 1));
    }
}
