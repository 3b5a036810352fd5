package org.millrace.cli.console;

import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes maps, collections, strings, numbers, booleans and null as JSON (RFC 8259), two blanks deeper with each level.
 */
public final class Json {

    private final StringBuilder text = new StringBuilder();

    private Json() {}

    /**
     * Writes a value.
     *
     * @param value what to write; numbers that JSON does not have (infinities, NaN) become null
     * @throws IllegalArgumentException if there is anything else in it
     */
    public static String write(@Nullable Object value) {
        Json json = new Json();
        json.append(value, 0);
        return json.text.append('\n').toString();
    }

    private void append(@Nullable Object value, int depth) {
        switch (value) {
            case null -> text.append("null");
            case String string -> quote(string);
            case Boolean bool -> text.append(bool);
            case Double number when !Double.isFinite(number) -> text.append("null");
            case Number number -> text.append(number);
            case Map<?, ?> map -> members(map, depth);
            case Collection<?> collection -> elements(collection, depth);
            default -> throw new IllegalArgumentException("no JSON for " + value.getClass());
        }
    }

    private void members(Map<?, ?> map, int depth) {
        text.append('{');
        String separator = "";
        for (Map.Entry<?, ?> member : map.entrySet()) {
            text.append(separator);
            line(depth + 1);
            quote((String) member.getKey());
            text.append(": ");
            append(member.getValue(), depth + 1);
            separator = ",";
        }
        if (!map.isEmpty()) {
            line(depth);
        }
        text.append('}');
    }

    private void elements(Collection<?> collection, int depth) {
        text.append('[');
        for (Iterator<?> each = collection.iterator(); each.hasNext();) {
            line(depth + 1);
            append(each.next(), depth + 1);
            text.append(each.hasNext() ? "," : "");
        }
        if (!collection.isEmpty()) {
            line(depth);
        }
        text.append(']');
    }

    private void line(int depth) {
        text.append('\n').append("  ".repeat(depth));
    }

    private void quote(String string) {
        text.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\n' -> text.append("\\n");
                case '\t' -> text.append("\\t");
                default -> {
                    if (c < 0x20) {
                        text.append(String.format("\\u%04x", (int) c));
                    } else {
                        text.append(c);
                    }
                }
            }
        }
        text.append('"');
    }
}
