package org.millrace.cli.base;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ParagraphTest {

    @Test
    void linesBreakBetweenWordsAndAreIndented() {
        assertEquals("> one two\n  three", Paragraph.wrap("> ", "one two three", 10));
        assertEquals("one two", Paragraph.wrap("", "one two", 7), "as wide as allowed");
    }

    @Test
    void whatIsWiderThanALineStaysWhole() {
        assertEquals("a\n/usr/lib/x\nb", Paragraph.wrap("", "a /usr/lib/x b", 4));
    }

    @Test
    void endsOfLinesStay() {
        assertEquals("x: a\n   b\n   \n   c", Paragraph.wrap("x: ", "a\nb\n\nc", 80));
    }
}
