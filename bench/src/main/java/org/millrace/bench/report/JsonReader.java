package org.millrace.bench.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON (RFC 8259) into maps, lists, strings, doubles, booleans and null. */
public final class JsonReader {

    private final String text;
    private int at;

    private JsonReader(String text) {
        this.text = text;
    }

    /**
     * Reads a value.
     *
     * @param text all of it
     * @return the value
     * @throws IllegalArgumentException if it is no JSON; the message says where
     */
    public static Object read(String text) {
        JsonReader reader = new JsonReader(text);
        Object value = reader.value();
        reader.blanks();
        if (reader.at != text.length()) {
            throw reader.unexpected("the end");
        }
        return value;
    }

    private Object value() {
        blanks();
        return switch (peek()) {
            case '{' -> members();
            case '[' -> elements();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        if (follows('}')) {
            return members;
        }
        do {
            blanks();
            String name = string();
            expect(':');
            members.put(name, value());
        } while (follows(','));
        expect('}');
        return members;
    }

    private List<Object> elements() {
        List<Object> elements = new ArrayList<>();
        at++;
        if (follows(']')) {
            return elements;
        }
        do {
            elements.add(value());
        } while (follows(','));
        expect(']');
        return elements;
    }

    private String string() {
        if (peek() != '"') {
            throw unexpected("a string");
        }
        StringBuilder string = new StringBuilder();
        for (at++; peek() != '"'; at++) {
            if (peek() != '\\') {
                string.append(peek());
                continue;
            }
            at++;
            switch (peek()) {
                case 'n' -> string.append('\n');
                case 't' -> string.append('\t');
                case 'r' -> string.append('\r');
                case 'b' -> string.append('\b');
                case 'f' -> string.append('\f');
                case 'u' -> {
                    string.append((char) Integer.parseInt(text, at + 1, at + 5, 16));
                    at += 4;
                }
                default -> string.append(peek());
            }
        }
        at++;
        return string.toString();
    }

    private Double number() {
        int begin = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        try {
            return Double.valueOf(text.substring(begin, at));
        } catch (NumberFormatException e) {
            at = begin;
            throw unexpected("a value");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw unexpected(word);
        }
        at += word.length();
        return value;
    }

    private boolean follows(char wanted) {
        blanks();
        if (peek() != wanted) {
            return false;
        }
        at++;
        return true;
    }

    private void expect(char wanted) {
        if (!follows(wanted)) {
            throw unexpected("'" + wanted + "'");
        }
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        if (at >= text.length()) {
            throw unexpected("more");
        }
        return text.charAt(at);
    }

    private IllegalArgumentException unexpected(String wanted) {
        return new IllegalArgumentException(
                "no JSON: " + wanted + " expected at character " + at + " of " + text.length());
    }
}
