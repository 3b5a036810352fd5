package org.millrace.cli.launch;

import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;

/**
 * Events as lines of text, which a rank in a process of its own writes to its standard output: a prefix, the name of
 * the record, and its components with tabs between. A component is a number, a boolean, a string, a list of strings, or
 * a record of these. A line without the prefix is no event.
 */
final class EventCodec {

    private static final String PREFIX = "@millrace-rank\t";

    private EventCodec() {}

    static String encode(RankEvent event) {
        StringBuilder line = new StringBuilder(PREFIX).append(event.getClass().getName());
        append(line, event);
        return line.toString();
    }

    private static void append(StringBuilder line, Object value) {
        switch (value) {
            case Record fields -> {
                for (RecordComponent component : fields.getClass().getRecordComponents()) {
                    append(line, read(component, fields));
                }
            }
            case List<?> list -> {
                append(line, list.size());
                list.forEach(element -> append(line, element));
            }
            default -> line.append('\t').append(escape(value.toString()));
        }
    }

    private static Object read(RecordComponent component, Record from) {
        try {
            component.getAccessor().setAccessible(true); // records of other packages
            return component.getAccessor().invoke(from);
        } catch (ReflectiveOperationException unreadable) {
            throw new IllegalStateException(component + " cannot be read", unreadable);
        }
    }

    /** The event in a line of a rank's output; empty if the line is something else. */
    static Optional<RankEvent> decode(String line) {
        if (!line.startsWith(PREFIX)) {
            return Optional.empty();
        }
        Iterator<String> fields = Arrays.asList(line.substring(PREFIX.length()).split("\t", -1)).iterator();
        try {
            Class<?> type = Class.forName(fields.next());
            if (!RankEvent.class.isAssignableFrom(type) || !type.isRecord()) {
                throw new IllegalArgumentException("no event: " + line);
            }
            return Optional.of((RankEvent) decode(type, fields));
        } catch (ReflectiveOperationException unknown) {
            throw new IllegalArgumentException("an event that does not exist: " + line, unknown);
        }
    }

    private static Object decode(Class<?> type, Iterator<String> fields) throws ReflectiveOperationException {
        if (type.isRecord()) {
            RecordComponent[] components = type.getRecordComponents();
            Object[] values = new Object[components.length];
            for (int i = 0; i < values.length; i++) {
                values[i] = decode(components[i].getType(), fields);
            }
            var constructor = type.getDeclaredConstructor(
                    Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new));
            constructor.setAccessible(true);
            return constructor.newInstance(values);
        }
        String text = unescape(fields.next());
        return switch (type.getName()) {
            case "int" -> Integer.valueOf(text);
            case "long" -> Long.valueOf(text);
            case "double" -> Double.valueOf(text);
            case "boolean" -> Boolean.valueOf(text);
            case "java.util.List" -> {
                List<String> list = new ArrayList<>();
                for (int left = Integer.parseInt(text); left > 0; left--) {
                    list.add(unescape(fields.next()));
                }
                yield list;
            }
            default -> text;
        };
    }

    private static String escape(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }

    private static String unescape(String text) {
        StringBuilder plain = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c != '\\') {
                plain.append(c);
            } else {
                i++;
                plain.append(switch (text.charAt(i)) {
                    case 't' -> '\t';
                    case 'n' -> '\n';
                    case 'r' -> '\r';
                    default -> text.charAt(i);
                });
            }
        }
        return plain.toString();
    }
}
