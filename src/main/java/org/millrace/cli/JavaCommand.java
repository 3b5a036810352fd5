package org.millrace.cli;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Setting;
import org.millrace.config.Settings;

/** The command that starts another JVM like this one. */
final class JavaCommand {

    /** By name: commands use this class, and it lies above them. */
    private static final String MAIN = "org.millrace.cli.Main";

    /**
     * A property with options that every JVM started from here gets besides, blanks between: tests start many that live
     * for a second, on which C2 would be wasted. Not {@code millrace.*}: those are settings.
     */
    static final String OPTIONS = "org.millrace.cli.java.options";

    private JavaCommand() {}

    /** The same Java first, options, class path, and main class. */
    static List<String> of(List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // a JVM without memory left cannot say so, and its parent would wait
        command.add("-XX:+ExitOnOutOfMemoryError");
        // a debugger's or profiler's port is taken by this process
        ManagementFactory.getRuntimeMXBean()
                .getInputArguments()
                .stream()
                .filter(JavaCommand::isInheritable)
                .forEach(command::add);
        command.addAll(Pattern.compile(" +")
                .splitAsStream(System.getProperty(OPTIONS, ""))
                .filter(option -> !option.isEmpty())
                .toList());
        String classPath = System.getProperty("java.class.path");
        command.addAll(isJar(classPath) ? List.of("-jar", classPath) // its manifest grants what it needs
                : List.of("--enable-native-access=ALL-UNNAMED", "--class-path", classPath, MAIN));
        command.addAll(arguments);
        return command;
    }

    /**
     * The same for one of several ranks of this host. Where they are more than its cores each has fewer threads and
     * less memory, unless the user has chosen how much and how it is collected.
     */
    static List<String> ofRank(int ranks, List<String> arguments) {
        List<String> command = of(arguments);
        if (ranks > Runtime.getRuntime().availableProcessors()
                && command.stream().noneMatch(option -> option.matches("-XX:\\+Use\\w+GC|-Xm.*"))) {
            command.addAll(1, List.of("-XX:+UseSerialGC", "-Xms16m"));
        }
        return command;
    }

    /**
     * A process that is to run a command, without what is secret among its words: all users of the host can read these.
     * It has that in its environment, which is its user's alone.
     */
    static ProcessBuilder builder(List<String> command) {
        List<String> words = new ArrayList<>();
        Map<String, String> secrets = new HashMap<>();
        for (int i = 0; i < command.size(); i++) {
            boolean two = command.get(i).equals("-D") && i + 1 < command.size();
            String set = two ? command.get(i + 1) : command.get(i).replaceFirst("^-D=?", "");
            Setting<?> secret = two || command.get(i).startsWith("-D") ? secret(set) : null;
            if (secret != null) {
                secrets.put(secret.name(), set.substring(set.indexOf('=') + 1));
                i += two ? 1 : 0;
            } else {
                words.add(command.get(i));
            }
        }
        ProcessBuilder builder = new ProcessBuilder(words);
        builder.environment().putAll(secrets);
        return builder;
    }

    private static @Nullable Setting<?> secret(String assignment) {
        return Settings.ofPrograms()
                .stream()
                .filter(Setting::secret)
                .filter(setting -> assignment.startsWith(setting.name() + '=')
                        || assignment.startsWith(setting.property() + '='))
                .findFirst()
                .orElse(null);
    }

    private static boolean isInheritable(String option) {
        return !option.startsWith("-agentlib:") && !option.startsWith("-Xrunjdwp") && !option.startsWith("-Xdebug")
                && !option.startsWith("--enable-native-access");
    }

    /**
     * Whether this process was started by {@code java -jar}: the launcher then makes the jar the whole class path, and
     * begins its command with it.
     */
    private static boolean isJar(String classPath) {
        return !classPath.contains(File.pathSeparator) && classPath.endsWith(".jar")
                && System.getProperty("sun.java.command", "").startsWith(classPath);
    }
}
