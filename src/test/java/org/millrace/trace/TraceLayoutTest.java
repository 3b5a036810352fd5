package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.millrace.trace.TraceLayout.Text;

/** Positions of the fields within each kind of block of a trace. */
class TraceLayoutTest {

    @Test
    void noFieldBeginsInsideAText() throws ReflectiveOperationException {
        TreeSet<String> overlaps = new TreeSet<>();
        int found = 0;
        for (Class<?> fields : TraceLayout.class.getDeclaredClasses()) {
            Map<String, Integer> begins = new TreeMap<>();
            Map<String, Text> texts = new TreeMap<>();
            for (Field field : fields.getDeclaredFields()) {
                if (field.getType() == Text.class) {
                    texts.put(field.getName(), (Text) field.get(null));
                    begins.put(field.getName(), texts.get(field.getName()).offset());
                } else if (Modifier.isStatic(field.getModifiers()) && field.getName().endsWith("_OFFSET")) {
                    begins.put(field.getName(), field.getInt(null));
                }
            }
            found += texts.size();
            texts.forEach((name, text) -> {
                int end = text.offset() + text.bytes();
                assertFalse(end > TraceLayout.RECORD_BYTES, name);
                begins.forEach((other, at) -> {
                    if (at > text.offset() && at < end) {
                        overlaps.add(fields.getSimpleName() + ": " + other + " in " + name);
                    }
                });
            });
        }
        assertTrue(found > 0);
        assertEquals("", String.join("\n", overlaps));
    }
}
