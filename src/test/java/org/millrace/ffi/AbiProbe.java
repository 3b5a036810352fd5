package org.millrace.ffi;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * A C program that prints types and constants as the C compiler sees them, and the output that Java expects. Each line
 * of output is {@code key=value}.
 */
final class AbiProbe {
    private static final int REAL = 8;
    private static final int INTEGER = 1;

    private final StringBuilder body = new StringBuilder();
    private final Map<String, String> expected = new LinkedHashMap<>();
    private final UnaryOperator<String> spelling;
    private int fields;

    /** @param spelling maps {@code type.path} to its spelling in the C headers, or to "" to omit it */
    AbiProbe(UnaryOperator<String> spelling) {
        this.spelling = spelling;
    }

    Map<String, String> expected() {
        return expected;
    }

    int fields() {
        return fields;
    }

    void size(String name, long bytes, long alignment) {
        ask("sizeof " + name, "sizeof(" + name + ")", bytes);
        ask("alignof " + name, "__alignof__(" + name + ")", alignment);
    }

    void group(String name, Layout layout) {
        size(name, layout.bytes(), layout.alignment());
        layout.fields().forEach(field -> field(name, field));
    }

    /**
     * Adds a constant. The program prints the constant's value, and shows whether its type in C equals its type in
     * Java.
     */
    void constant(String name, Number value) {
        ask("sizeof " + name, "sizeof(" + name + ")", size(value));
        ask("kind " + name, "KIND(" + name + ")", isReal(value) ? REAL : INTEGER);
        value(name, value);
    }

    void value(String name, Number value) {
        if (isReal(value)) {
            expected.put(name, Double.toString(value.doubleValue()));
            body.append("  printf(\"%s=%%.1f\\n\", (double)(%s));\n".formatted(name, name));
        } else {
            // A large unsigned constant of C is a negative int in Java, so only the bits are compared.
            boolean isInt = size(value) == Integer.BYTES;
            long bits = isInt ? Integer.toUnsignedLong(value.intValue()) : value.longValue();
            ask(name, "(unsigned long long)(" + name + ")" + (isInt ? " & 0xffffffffULL" : ""), bits);
        }
    }

    private static boolean isReal(Number value) {
        return value instanceof Float || value instanceof Double;
    }

    private static int size(Number value) {
        return value instanceof Long || value instanceof Double ? Long.BYTES : Integer.BYTES;
    }

    String source(String prologue) {
        return prologue + """

                #include <stddef.h>
                #include <stdio.h>
                #define KIND_OF(k) ((k) >= 1 && (k) <= 4 ? %d : (k))
                #define KIND(e) KIND_OF(__builtin_classify_type(e))
                int main(void) {
                """.formatted(INTEGER) + body + "  return 0;\n}\n";
    }

    private void field(String type, Layout.Field field) {
        String spelled = spelling.apply(type + "." + field.path());
        if (spelled.isEmpty()) {
            return;
        }
        fields++;
        String path = spelled.substring(type.length() + 1);
        String name = type + "." + field.path();
        String value = "((" + type + " *)0)->" + path;
        ask("offsetof " + name, "offsetof(" + type + ", " + path + ")", field.offset());
        ask("sizeof " + name, "sizeof(" + value + ")", field.bytes());
        if (field.kind() != 0) {
            ask("kind " + name, "KIND(" + value + ")", field.kind());
        }
    }

    private void ask(String key, String expression, long value) {
        if (expected.put(key, Long.toString(value)) != null) {
            throw new IllegalArgumentException("two headers declare " + key);
        }
        body.append("  printf(\"%s=%%llu\\n\", (unsigned long long)(%s));\n".formatted(key, expression));
    }
}
