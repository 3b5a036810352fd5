package org.millrace.plugin;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;

/**
 * A fault that is planted in the takeover, to show that a test finds it. The property {@code millrace.fault} plants a
 * fault in the programs that tests start, for example {@code mvn test -Dtest=TakeoverHostTest
 * -Dmillrace.fault=early-head}. The tests that find the fault then fail. The sources and classes of the checkout remain
 * unchanged.
 */
final class PlantedFault {

    /** Name of the planted fault; empty for none. */
    static final String NAME = System.getProperty("millrace.fault", "");

    private static final Path SOURCES = Path.of("src", "main", "java", "org", "millrace");
    private static final Path LIST = Path.of("src", "test", "resources", "org", "millrace", "plugin", "faults.txt");
    private static final Pattern EDIT =
            Pattern.compile("^@ (\\S+) (\\S+)\n(.+?)\n=>\n(.+?)\n(?=\n@|\\z)", Pattern.DOTALL | Pattern.MULTILINE);

    private PlantedFault() {}

    static Set<String> names() throws IOException {
        Set<String> names = new LinkedHashSet<>();
        edits().forEach(edit -> names.add(edit.group(1)));
        return names;
    }

    private static List<MatchResult> edits() throws IOException {
        return EDIT.matcher(Files.readString(LIST)).results().toList();
    }

    /** Returns the source files that a fault changes, each with its changed text. */
    static Map<Path, String> sources(String fault) throws IOException {
        Map<Path, String> sources = new LinkedHashMap<>();
        for (MatchResult edit : edits()) {
            if (edit.group(1).equals(fault)) {
                Path source = SOURCES.resolve(edit.group(2));
                String text = sources.containsKey(source) ? sources.get(source) : Files.readString(source);
                String[] parts = text.split(Pattern.quote(edit.group(3)), -1);
                if (parts.length != 2) {
                    throw new IllegalStateException("fault " + fault + ": " + source + " has " + (parts.length - 1)
                            + " times, not once: " + edit.group(3));
                }
                sources.put(source, parts[0] + edit.group(4) + parts[1]);
            }
        }
        if (sources.isEmpty()) {
            throw new IllegalArgumentException("unknown fault " + fault + "; " + LIST + " has " + names());
        }
        return sources;
    }

    /** Compiles the sources of a fault to a folder below {@code target}, and returns the folder. */
    static Path compile(String fault) throws IOException {
        Path root = Path.of("target", "faults", fault);
        Path classes = Files.createDirectories(root.resolve("classes"));
        List<String> arguments = new ArrayList<>(List.of("-proc:none", "-nowarn", "-cp",
                System.getProperty("java.class.path"), "-d", classes.toString()));
        for (Map.Entry<Path, String> source : sources(fault).entrySet()) {
            Path file = root.resolve(source.getKey());
            Files.createDirectories(file.getParent());
            arguments.add(Files.writeString(file, source.getValue()).toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)) != 0) {
            throw new IllegalStateException("fault " + fault + " does not compile");
        }
        return classes;
    }
}
