package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Positions of the fields within each kind of block of a trace. */
class TraceLayoutTest {

    @Test
    void noFieldBeginsInsideAText() throws ReflectiveOperationException {
        TreeSet<String> overlaps = new TreeSet<>();
        for (Class<?> fields : TraceLayout.class.getDeclaredClasses()) {
            Map<String, Integer> numbers = new TreeMap<>();
            for (Field field : fields.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && field.getType() == int.class) {
                    numbers.put(field.getName(), field.getInt(null));
                }
            }
            numbers.forEach((name, begin) -> {
                Integer bytes = numbers.get(name.replaceFirst("_OFFSET$", "_BYTES"));
                if (name.endsWith("_OFFSET") && bytes != null) {
                    assertFalse(begin + bytes > TraceLayout.RECORD_BYTES, name);
                    numbers.forEach((other, at) -> {
                        if (other.endsWith("_OFFSET") && at > begin && at < begin + bytes) {
                            overlaps.add(fields.getSimpleName() + ": " + other + " in " + name);
                        }
                    });
                }
            });
        }
        assertEquals("", String.join("\n", overlaps));
    }
}
