package org.millrace.ffi;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.SequenceLayout;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * A C program that prints the C compiler's values for types and constants, together with Java's values. Each question
 * is one line of output, {@code key=value}. Both sides are derived from the generated layouts.
 */
final class AbiProbe {
    private static final int POINTER = 5;
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

    void type(String name, MemoryLayout layout, long alignment) {
        ask("sizeof " + name, "sizeof(" + name + ")", layout.byteSize());
        ask("alignof " + name, "__alignof__(" + name + ")", alignment);
    }

    void group(String name, GroupLayout layout, long alignment) {
        type(name, layout, alignment);
        members(name, layout, "", layout, new ArrayList<>());
    }

    /** Asks for a constant's value, and whether C and Java give it the same type. */
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
            // An unsigned constant is a negative int in Java, so only the bits can agree.
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

    private void members(String type, GroupLayout root, String prefix, GroupLayout group, List<PathElement> path) {
        for (MemoryLayout member : group.memberLayouts()) {
            if (member instanceof PaddingLayout) {
                continue;
            }
            String name = member.name().orElseThrow();
            List<PathElement> memberPath = append(path, PathElement.groupElement(name));
            member(type, root, prefix + name, member, memberPath);
        }
    }

    private void member(String type, GroupLayout root, String cPath, MemoryLayout member, List<PathElement> path) {
        String cName = spelling.apply(type + "." + cPath);
        if (!cName.isEmpty()) {
            long offset = root.byteOffset(path.toArray(PathElement[]::new));
            field(type, cName.substring(type.length() + 1), cPath, member, offset);
        }
        switch (member) {
            case GroupLayout nested -> members(type, root, cPath + ".", nested, path);
            // The first element proves the array's offset, and the last one proves its length and stride.
            case SequenceLayout array -> {
                element(type, root, cPath, array, 0, path);
                if (array.elementCount() > 1) {
                    element(type, root, cPath, array, array.elementCount() - 1, path);
                }
            }
            case ValueLayout value -> {}
            case PaddingLayout padding -> throw new AssertionError("padding has no name: " + cPath);
        }
    }

    private void element(String type, GroupLayout root, String cPath, SequenceLayout array, long index,
            List<PathElement> path) {
        String elementPath = cPath + "[" + index + "]";
        member(type, root, elementPath, array.elementLayout(), append(path, PathElement.sequenceElement(index)));
    }

    private void field(String type, String cPath, String key, MemoryLayout layout, long offset) {
        fields++;
        String name = type + "." + key;
        String value = "((" + type + " *)0)->" + cPath;
        ask("offsetof " + name, "offsetof(" + type + ", " + cPath + ")", offset);
        ask("sizeof " + name, "sizeof(" + value + ")", layout.byteSize());
        switch (layout) {
            case AddressLayout address -> ask("kind " + name, "KIND(" + value + ")", POINTER);
            case ValueLayout.OfFloat real -> ask("kind " + name, "KIND(" + value + ")", REAL);
            case ValueLayout.OfDouble real -> ask("kind " + name, "KIND(" + value + ")", REAL);
            case ValueLayout integer -> ask("kind " + name, "KIND(" + value + ")", INTEGER);
            default -> {}
        }
    }

    private void ask(String key, String expression, long value) {
        if (expected.put(key, Long.toString(value)) != null) {
            throw new IllegalArgumentException("two headers declare " + key);
        }
        body.append("  printf(\"%s=%%llu\\n\", (unsigned long long)(%s));\n".formatted(key, expression));
    }

    private static List<PathElement> append(List<PathElement> path, PathElement element) {
        List<PathElement> longer = new ArrayList<>(path);
        longer.add(element);
        return longer;
    }
}
