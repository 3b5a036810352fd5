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
 * Modules of the JDK that Millrace needs. A Java runtime that jlink created contains only the modules that its author
 * listed. Without this check, a missing module is detected late, at the first connection, as a class that cannot be
 * found.
 */
public final class RuntimeModules {

    private static final List<String> PLUGIN = List.of("java.base", "jdk.net");
    /**
     * Modules of {@link #PLUGIN}, and the further modules that the command line and Log4j's own back end need. Log4j
     * uses the beans package of java.desktop.
     */
    private static final List<String> ALL = List.of("java.base", "java.desktop", "java.logging", "java.management",
            "java.naming", "java.xml", "jdk.net", "jdk.unsupported");
    private static final Pattern MODULES = Pattern.compile("(?m)^MODULES=\"([^\"]*)\"");

    private RuntimeModules() {}

    /**
     * {@return the reason why this Java cannot run the plugin, with the command that creates a suitable runtime; null
     * if it can run the plugin}
     */
    public static @Nullable String problemHere() {
        return problem(Path.of(System.getProperty("java.home")),
                ModuleLayer.boot().modules().stream().map(Module::getName).collect(Collectors.toSet()), PLUGIN);
    }

    /** {@return the modules that this Java lacks for all of Millrace, including the command line; null if none} */
    public static @Nullable String incompleteHere() {
        return problem(Path.of(System.getProperty("java.home")),
                ModuleLayer.boot().modules().stream().map(Module::getName).collect(Collectors.toSet()), ALL);
    }

    /**
     * {@return the reason why another Java cannot run the plugin; null if it can run the plugin, or if it does not list
     * its modules}
     *
     * @param home home directory of that Java
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

    /** Returns the command that creates a runtime with the present modules and the modules that Millrace needs. */
    private static String jlinkLine(Set<String> present) {
        Set<String> all = new TreeSet<>(present);
        all.addAll(ALL);
        return "jlink --add-modules " + String.join(",", all.size() <= 2 * ALL.size() ? all : ALL)
                + " --output DIRECTORY";
    }

    /** {@return the command that creates the smallest runtime for Millrace} */
    public static String jlinkLine() {
        return jlinkLine(Set.of());
    }
}
