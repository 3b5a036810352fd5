package org.millrace.plugin;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The modules of the JDK that Millrace needs: a Java runtime that jlink made has those that its maker named, and lacks
 * the rest. What is missing shows late, at the first connection, and as a class that cannot be found.
 */
public final class RuntimeModules {

    /** Without these the plugin does not run. */
    private static final List<String> PLUGIN = List.of("java.base", "jdk.net");
    /** With these the command line and Log4j's own back end run too, which tells of changes by java.desktop's beans. */
    private static final List<String> ALL = List.of("java.base", "java.desktop", "java.logging", "java.management",
            "java.naming", "java.xml", "jdk.net", "jdk.unsupported");
    private static final Pattern MODULES = Pattern.compile("(?m)^MODULES=\"([^\"]*)\"");

    private RuntimeModules() {}

    /** {@return why this Java cannot run the plugin, with what makes one that can; null if it can} */
    public static @Nullable String problemHere() {
        return problem(Path.of(System.getProperty("java.home")),
                ModuleLayer.boot().modules().stream().map(Module::getName).collect(Collectors.toSet()), PLUGIN);
    }

    /** {@return what this Java lacks of all that Millrace needs, command line and all; null if nothing} */
    public static @Nullable String incompleteHere() {
        return problem(Path.of(System.getProperty("java.home")),
                ModuleLayer.boot().modules().stream().map(Module::getName).collect(Collectors.toSet()), ALL);
    }

    /**
     * {@return why another Java cannot run the plugin; null if it can, or if it does not say what it has}
     *
     * @param home its home
     */
    public static @Nullable String problemOf(Path home) {
        try {
            Matcher found = MODULES.matcher(Files.readString(home.resolve("release")));
            return found.find() ? problem(home, Set.of(found.group(1).split(" ")), PLUGIN) : null;
        } catch (IOException silent) {
            return null;
        }
    }

    private static @Nullable String problem(Path home, Set<String> present, List<String> needed) {
        List<String> missing = new ArrayList<>(needed);
        missing.removeAll(present);
        if (missing.isEmpty()) {
            return null;
        }
        return "the Java runtime " + home + " lacks the module" + (missing.size() == 1 ? " " : "s ")
                + String.join(", ", missing) + ". Take a whole JDK, or make the runtime with '" + jlinkLine(present)
                + "'";
    }

    /** The command that makes a runtime that has what this one has and what Millrace needs. */
    private static String jlinkLine(Set<String> present) {
        Set<String> all = new TreeSet<>(present);
        all.addAll(ALL);
        return "jlink --add-modules " + String.join(",", all.size() <= 2 * ALL.size() ? all : ALL)
                + " --output DIRECTORY";
    }

    /** {@return the command that makes a runtime of the least that Millrace needs} */
    public static String jlinkLine() {
        return jlinkLine(Set.of());
    }
}
