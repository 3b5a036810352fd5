package org.millrace.ffi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The declarations of {@code headers/}, read without jextract. The parser accepts only the style of these headers. It
 * throws for anything else, so no declaration is skipped.
 */
final class HeaderScan {
    private static final Pattern COMMENT = Pattern.compile("/\\*.*?\\*/", Pattern.DOTALL);
    private static final Pattern MACRO = Pattern.compile("(?m)^#define[ \\t]+(\\w+)[ \\t]+\\S.*$");
    private static final Pattern DIRECTIVE = Pattern.compile("(?m)^#.*$");
    private static final Pattern GROUP = Pattern.compile(
            "typedef (?:struct|union) (\\w+) \\{(.*)\\} ?(?:__attribute__\\(\\(aligned\\((\\d+)\\)\\)\\) )?\\1");
    private static final Pattern ENUM = Pattern.compile("typedef enum (\\w+) \\{(.*)\\} (\\w+)");
    private static final Pattern FUNCTION_POINTER = Pattern.compile("(?:typedef )?\\w+ \\(\\*(\\w+)\\)\\((.*)\\)");
    private static final Pattern POINTER = Pattern.compile("typedef struct \\w+ \\*(\\w+)");
    private static final Pattern ALIAS = Pattern.compile("typedef (\\w+) (\\w+)");
    private static final Pattern INCOMPLETE = Pattern.compile("struct \\w+");
    private static final Pattern FUNCTION = Pattern.compile("(?:const )?\\w+ \\*?(\\w+)\\((.*)\\)");
    private static final Pattern FIELD = Pattern.compile(".*?(\\w+)(?:\\[[^\\]]*\\])*");

    /** A declared function or function pointer. */
    record Function(String declaration, int parameters) {
    }

    /** Names of the fields of each struct or union. An alias has the same fields. */
    final SortedMap<String, List<String>> groups = new TreeMap<>();
    /** Alignment that the declaration of a struct or union demands. */
    final SortedMap<String, Long> alignments = new TreeMap<>();
    final SortedMap<String, Path> constants = new TreeMap<>();
    final SortedMap<String, Function> functions = new TreeMap<>();
    /** Function pointers. A function pointer in a struct has the name {@code struct.field}. */
    final SortedMap<String, Function> functionPointers = new TreeMap<>();
    final SortedMap<String, String> pointerTypes = new TreeMap<>();

    private final Map<String, String> aliases = new TreeMap<>();

    static HeaderScan of(Path directory) throws IOException {
        HeaderScan scan = new HeaderScan();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
                scan.read(file);
            }
        }
        scan.aliases.forEach((alias, type) -> scan.groups.put(alias, scan.groups.get(type)));
        return scan;
    }

    private void read(Path file) throws IOException {
        String text = COMMENT.matcher(Files.readString(file).replace("\\\n", " ")).replaceAll("");
        Matcher macro = MACRO.matcher(text);
        while (macro.find()) {
            constants.put(macro.group(1), file);
        }
        int depth = 0;
        StringBuilder statement = new StringBuilder();
        for (char character : DIRECTIVE.matcher(text).replaceAll("").toCharArray()) {
            depth += character == '{' ? 1 : character == '}' ? -1 : 0;
            if (depth == 0 && character == ';') {
                declare(file, statement.toString().replaceAll("\\s+", " ").strip());
                statement.setLength(0);
            } else {
                statement.append(character);
            }
        }
        if (!statement.toString().isBlank()) {
            throw new IllegalArgumentException(file + ": text after the last semicolon: " + statement);
        }
    }

    private void declare(Path file, String statement) {
        Matcher matcher;
        if ((matcher = GROUP.matcher(statement)).matches()) {
            groups.put(matcher.group(1), fields(file, matcher.group(1), matcher.group(2)));
            if (matcher.group(3) != null) {
                alignments.put(matcher.group(1), Long.valueOf(matcher.group(3)));
            }
        } else if ((matcher = ENUM.matcher(statement)).matches()) {
            for (String enumerator : matcher.group(2).split(",")) {
                constants.put(enumerator.replaceFirst("=.*", "").strip(), file);
            }
        } else if ((matcher = FUNCTION_POINTER.matcher(statement)).matches()) {
            functionPointer(matcher.group(1), statement, matcher.group(2));
        } else if ((matcher = POINTER.matcher(statement)).matches()) {
            pointerTypes.put(matcher.group(1), statement);
        } else if ((matcher = ALIAS.matcher(statement)).matches()) {
            aliases.put(matcher.group(2), matcher.group(1));
        } else if ((matcher = FUNCTION.matcher(statement)).matches()) {
            functions.put(matcher.group(1), new Function(statement, count(matcher.group(2))));
        } else if (!INCOMPLETE.matcher(statement).matches()) {
            throw new IllegalArgumentException(file + ": cannot tell what this declares: " + statement);
        }
    }

    private List<String> fields(Path file, String group, String body) {
        if (body.contains("{") || body.contains(":")) {
            throw new IllegalArgumentException(file + ": " + group
                    + ": write nested types at file scope, and bit-fields as the words that hold them");
        }
        List<String> names = new ArrayList<>();
        for (String field : Arrays.stream(body.split(";")).map(String::strip).filter(s -> !s.isEmpty()).toList()) {
            Matcher pointer = FUNCTION_POINTER.matcher(field);
            Matcher plain = FIELD.matcher(field);
            if (pointer.matches()) {
                names.add(pointer.group(1));
                functionPointer(group + "." + pointer.group(1), field, pointer.group(2));
            } else if (!field.contains(",") && plain.matches()) {
                names.add(plain.group(1));
            } else {
                throw new IllegalArgumentException(file + ": " + group + ": one field a declaration: " + field);
            }
        }
        return names;
    }

    /**
     * Records a function pointer. A variadic function pointer is not recorded, because jextract generates nothing for
     * it.
     */
    private void functionPointer(String name, String declaration, String parameters) {
        if (!parameters.contains("...")) {
            functionPointers.put(name, new Function(declaration, count(parameters)));
        }
    }

    private static int count(String parameters) {
        return parameters.equals("void") ? 0 : parameters.split(",").length;
    }
}
