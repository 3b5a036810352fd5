package org.millrace.cli.base;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {

    @Test
    void everythingIsWritten() {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("text", "a \"b\" \\ \n\t\u0001 é");
        map.put("numbers", Arrays.asList(1, -2.5, Long.MAX_VALUE, Double.NaN, Double.POSITIVE_INFINITY));
        map.put("empty", List.of());
        map.put("none", null);
        map.put("nested", Map.of("yes", true));
        assertEquals("""
                {
                  "text": "a \\"b\\" \\\\ \\n\\t\\u0001 é",
                  "numbers": [
                    1,
                    -2.5,
                    9223372036854775807,
                    null,
                    null
                  ],
                  "empty": [],
                  "none": null,
                  "nested": {
                    "yes": true
                  }
                }
                """, Json.write(map));
    }

    @Test
    void whatWasWrittenIsReadAgainAndWholeNumbersStayWhole() {
        Map<String, Object> map = Map.of("whole", Long.MAX_VALUE, "part", -2.5e-7, "list", List.of("a \"b\" é", true));
        assertEquals(map, Json.read(Json.write(map)));
    }

    @Test
    void timesAreWrittenWithoutAnExponent() {
        assertTrue(Json.write(List.of(1.7954423295123818E12)).contains("1795442329512.3818"));
        assertTrue(Json.write(List.of(1.0E7)).contains("10000000.0"));
        assertTrue(Json.write(List.of(1.0E20)).contains("1.0E20"));
    }

    @Test
    void whatIsNoJsonIsRefused() {
        for (String text : List.of("", "{", "[1,", "{\"a\" 1}", "[1] 2", "nul", "\"a", "[1 2]")) {
            assertTrue(assertThrows(IllegalArgumentException.class, () -> Json.read(text), text).getMessage()
                    .startsWith("the text is "), text);
        }
    }

    @Test
    void whatJsonDoesNotHaveIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> Json.write(new Object()));
    }
}
