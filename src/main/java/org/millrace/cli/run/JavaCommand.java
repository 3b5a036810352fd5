package org.millrace.cli.run;

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

/** Command line that starts another JVM with the options of this JVM. */
public final class JavaCommand {

    /**
     * Name of the main class. A reference to the class would create a cycle of dependencies, because the main class
     * uses the commands.
     */
    private static final String MAIN = "org.millrace.cli.Main";

    /**
     * System property with further options, separated by blanks, for every JVM that this class starts. Tests set this
     * property, because they start many JVMs that run for about a second. A second is too short for the JIT compiler
     * C2. The name is not {@code millrace.*}, because that prefix marks settings.
     */
    public static final String OPTIONS = "org.millrace.cli.java.options";

    private JavaCommand() {}

    /** Returns the command. It has the same Java, options, class path and main class as this process. */
    public static List<String> of(List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // Without this option, a JVM that has no memory left could not report its failure. The parent would then wait
        // for the report.
        command.add("-XX:+ExitOnOutOfMemoryError");
        // The options of debuggers and profilers are dropped, because this process already uses their ports.
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
        command.addAll(isJar(classPath) ? List.of("-jar", classPath) // the jar's manifest grants native access
                : List.of("--enable-native-access=ALL-UNNAMED", "--class-path", classPath, MAIN));
        command.addAll(arguments);
        return command;
    }

    /**
     * Returns the command for one of several ranks of this host. With more ranks than cores, each rank's JVM uses fewer
     * threads and less memory, unless the user has chosen a collector or a heap size.
     */
    public static List<String> ofRank(int ranks, List<String> arguments) {
        List<String> command = of(arguments);
        if (ranks > Runtime.getRuntime().availableProcessors()
                && command.stream().noneMatch(option -> option.matches("-XX:\\+Use\\w+GC|-Xm.*"))) {
            command.addAll(1, List.of("-XX:+UseSerialGC", "-Xms16m"));
        }
        return command;
    }

    /**
     * Returns a process builder for a command. Moves secret settings from the command's arguments to the environment.
     * All users of the host can read a process's arguments, but only the process's user can read its environment.
     */
    public static ProcessBuilder builder(List<String> command) {
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
     * Returns whether this process was started by {@code java -jar}. Java's launcher then makes the jar the whole class
     * path, and {@code sun.java.command} begins with the jar.
     */
    private static boolean isJar(String classPath) {
        return !classPath.contains(File.pathSeparator) && classPath.endsWith(".jar")
                && System.getProperty("sun.java.command", "").startsWith(classPath);
    }
}
