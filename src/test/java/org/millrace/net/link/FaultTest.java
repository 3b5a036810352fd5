package org.millrace.net.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class FaultTest {

    @Test
    void readsAllForms() {
        assertEquals(
                List.of(new Fault(Fault.Kind.FLIP, 3, 17, 0, -1, 0), new Fault(Fault.Kind.CUT, 5, 0, 0, -1, 2),
                        new Fault(Fault.Kind.DELAY, 2, 0, 1000, -1, 0), new Fault(Fault.Kind.GARBAGE, 1, 0, 0, -1, 0),
                        new Fault(Fault.Kind.CUT, 9, 0, 0, 0, 0)),
                Fault.parse(
                        " flip:frame=3,bit=17; cut:frame=5,connection=2;delay:polls=1000 , frame=2; garbage:frame=1;cut:frame=9,rail=0"));
        assertEquals(List.of(), Fault.parse(""));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"flip:frame=3,bit=17", "cut:frame=5,connection=2", "delay:frame=2,polls=1000", "garbage:frame=1",
                    "cut:frame=9,rail=0"})
    void hasOneFormAsText(String text) {
        assertEquals(text, Fault.parse(text).getFirst().text());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"explode:frame=1|there is no fault 'explode'", "cut|'frame=' is missing",
                    "flip:frame=1|'bit=' is missing", "cut:frame=0|0 is less than 1",
                    "flip:frame=1,bit=-1|-1 is less than 0", "cut:frame=x|'x' is no number",
                    "cut:frame=1,bit=2|'bit=2' is no parameter of cut", "cut:frame|'frame' is no parameter",
                    "cut:frame=1,frame=2|'frame' is given twice", "cut:frame=1,connection=0|0 is less than 1",
                    "cut:frame=1,rail=-1|-1 is less than 0",
                    "flip:frame=1,bit=1,rail=1|'rail=1' is no parameter of flip",
                    "cut:frame=99999999999999999999|is no number"})
    void saysWhatIsWrongAndWhatIsAllowed(String text, String problem) {
        String message = assertThrows(IllegalArgumentException.class, () -> Fault.parse(text)).getMessage();
        assertTrue(message.contains(problem), message);
        assertTrue(message.contains("delay:frame=N,polls=N"), message);
    }
}
