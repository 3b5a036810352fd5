package org.millrace.ffi;

import java.util.Arrays;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The declarations of a C header, each as one line that does not depend on formatting: functions with the types of
 * their parameters, enumerators and macros with their values, fields with their types. The class parses {@code nccl.h}
 * and Millrace's own headers, and throws for any other syntax.
 */
final class HeaderDeclarations {

    private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/|//[^\n]*", Pattern.DOTALL);
    private static final Pattern MACRO = Pattern.compile("(?m)^[ \t]*#[ \t]*define[ \t]+(\\w+)[ \t]+(\\S.*)$");
    private static final Pattern DIRECTIVE = Pattern.compile("(?m)^[ \t]*#.*$");
    private static final Pattern ATTRIBUTE = Pattern.compile("__attribute__\\s*\\(\\(.*?\\)\\)\\)", Pattern.DOTALL);
    private static final Pattern ENUM = Pattern.compile("typedef enum \\w* ?\\{(.*)\\} ?(\\w+)");
    private static final Pattern STRUCT = Pattern.compile("typedef struct \\w* ?\\{(.*)\\} ?(\\w+)");
    private static final Pattern POINTER = Pattern.compile("typedef struct (\\w+) ?\\* ?(\\w+)");
    private static final Pattern FUNCTION = Pattern.compile("((?:const )?\\w+ ?\\*?) ?(\\w+)\\((.*)\\)");
    private static final Pattern VARIABLE = Pattern.compile("(.*?[ *])(\\w+)(\\[\\w+\\])?");
    /** Declarations that only the compiler needs. */
    private static final Pattern IGNORED = Pattern.compile("struct \\w+");

    private final SortedMap<String, String> all = new TreeMap<>();

    private HeaderDeclarations() {}

    /** {@return the lines of a header's declarations, by the declared name} */
    static SortedMap<String, String> of(String header) {
        HeaderDeclarations declarations = new HeaderDeclarations();
        declarations.read(COMMENT.matcher(header.replace("\\\n", " ")).replaceAll(" "));
        return declarations.all;
    }

    private void read(String text) {
        MACRO.matcher(text).results().forEach(macro -> {
            String value = macro.group(2).strip().replaceAll("\\s+", " ");
            all.put(macro.group(1), "macro " + macro.group(1) + " = " + value);
        });
        String code = ATTRIBUTE.matcher(DIRECTIVE.matcher(text).replaceAll("")).replaceAll("");
        if (code.contains("extern \"C\" {")) {
            code = code.replace("extern \"C\" {", "").replaceFirst("\\}\\s*$", "");
        }
        int depth = 0;
        StringBuilder statement = new StringBuilder();
        for (char character : code.toCharArray()) {
            depth += character == '{' ? 1 : character == '}' ? -1 : 0;
            if (depth == 0 && character == ';') {
                declare(statement.toString().replaceAll("\\s+", " ").strip());
                statement.setLength(0);
            } else {
                statement.append(character);
            }
        }
        if (!statement.toString().isBlank()) {
            throw new IllegalArgumentException("text after the last semicolon: " + statement);
        }
    }

    private void declare(String statement) {
        Matcher matcher;
        if ((matcher = ENUM.matcher(statement)).matches()) {
            for (String enumerator : matcher.group(1).split(",")) {
                String[] pair = enumerator.split("=");
                add("enumerator " + matcher.group(2), pair[0].strip(), " = " + pair[1].strip());
            }
        } else if ((matcher = STRUCT.matcher(statement)).matches()) {
            for (String field : matcher.group(1).strip().split(";")) {
                MatchResult one = variable(field);
                String array = one.group(3) == null ? "" : one.group(3);
                add("field", matcher.group(2) + "." + one.group(2), ": " + type(one.group(1)) + array);
            }
        } else if ((matcher = POINTER.matcher(statement)).matches()) {
            add("type", matcher.group(2), ": struct " + matcher.group(1) + "*");
        } else if ((matcher = FUNCTION.matcher(statement)).matches()) {
            String parameters = matcher.group(3).isBlank() || matcher.group(3).equals("void") ? ""
                    : Arrays.stream(matcher.group(3).split(","))
                            .map(each -> type(variable(each).group(1)))
                            .collect(Collectors.joining(", "));
            add("function", matcher.group(2), "(" + parameters + "): " + type(matcher.group(1)));
        } else if (!IGNORED.matcher(statement).matches()) {
            throw new IllegalArgumentException("cannot tell what this declares: " + statement);
        }
    }

    private void add(String kind, String name, String rest) {
        all.put(name, kind + " " + name + rest);
    }

    private static MatchResult variable(String text) {
        Matcher matcher = VARIABLE.matcher(text.strip());
        if (!matcher.matches()) {
            throw new IllegalArgumentException("cannot tell type and name of: " + text);
        }
        return matcher.toMatchResult();
    }

    private static String type(String text) {
        return text.strip().replaceAll("\\s*\\*", "*");
    }
}
