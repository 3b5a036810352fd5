package org.millrace.cli.run;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.JoinTraining;
import org.millrace.file.User;
import org.millrace.plugin.StartupCache;

/**
 * Startup cache for the ranks of {@code millrace run} if their command is {@code java} with jars on its class path.
 * After the first run, a separate process in the background runs a training program and so creates the cache. The
 * user's program is not used, because a JVM that records a cache takes longer to end, and fails if it cannot record.
 * There is one cache for each combination of Java, class path and relevant options, in the user's directory for caches.
 * If it is not certain that a cache can be used, ranks start without a cache, and no error is reported.
 */
final class RankCache {

    private static final int MAX_CACHES = 8;
    /**
     * Time limit of the process that creates a cache. After this time, another process may replace an unfinished cache.
     * The limit is long, because the creating process has the lowest priority.
     */
    private static final Duration DEADLINE = Duration.ofMinutes(10);

    /**
     * Options with which the ranks of a host share the memory pages of a cache. The sharing saves 8 MB for each rank.
     * The options make the JVM map the cache at the address that the cache was created for.
     */
    private static final List<String> SHARED = List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0");

    private static final Set<String> CLASS_PATH = Set.of("-cp", "-classpath", "--class-path");
    private static final Set<String> WITH_VALUE =
            Set.of("--add-modules", "--add-opens", "--add-exports", "--add-reads", "--enable-native-access");
    /**
     * Options that must be equal when a cache is created and when it is used. Other options are dropped for the
     * creation, because they may open ports and write files.
     */
    private static final Pattern KEPT = Pattern
            .compile("--(add-(modules|opens|exports|reads)|enable-native-access)=.*|--enable-preview|-Xm[nsx]\\w+"
                    + "|-XX:[+-](Use(?!Shared)|Unlock)\\w+|-XX:\\w*(HeapSize|RAM|Alignment)\\w*=.*");
    /** Options that exclude the use of a cache: modules, agents, the user's own archives, and options in files. */
    private static final Pattern REFUSED = Pattern.compile("@.*|--.*|-[pm]|-(agent|javaagent"
            + "|X(run|share|debug|bootclasspath)).*|-XX:.*(AOT|Archive|Shared|Flags=|OptionsFile).*");

    private final List<String> words;
    /** File of the cache. The file possibly does not exist yet. */
    final Path file;
    private final List<String> java;

    /** @param java beginning of the command that creates the cache: Java with the kept options and the class path */
    private RankCache(List<String> words, Path file, List<String> java) {
        this.words = words;
        this.file = file;
        this.java = java;
    }

    /**
     * Returns the cache of a command; null if a cache is impossible.
     *
     * @param environment environment of the command
     */
    static @Nullable RankCache of(List<String> words, Map<String, String> environment) {
        try {
            Path java = java(words.getFirst(), environment);
            Path directory = directory(environment);
            if (java == null || directory == null || !StartupCache.isKnownTo(java.getParent().getParent())
                    || !StartupCache.isLocal(directory)) {
                return null;
            }
            List<String> command = new ArrayList<>(List.of(java.toString()));
            List<String> entries = Stream.of(read(words, environment, command).split(File.pathSeparator))
                    .takeWhile(entry -> !Files.isDirectory(Path.of(entry)))
                    .toList();
            if (entries.isEmpty()) {
                return null;
            }
            Set<Path> files = new LinkedHashSet<>(List.of(java.resolveSibling("../release")));
            for (String entry : entries) {
                addJars(entry, files);
            }
            StringBuilder stamp = new StringBuilder(command.toString());
            for (Path each : files) {
                stamp.append("%n%s %d %s".formatted(each, Files.size(each), Files.getLastModifiedTime(each)));
            }
            UUID name = UUID.nameUUIDFromBytes(stamp.toString().getBytes(StandardCharsets.UTF_8));
            command.addAll(SHARED); // a JVM that does not support these options fails and creates no cache
            command.addAll(List.of("-cp", String.join(File.pathSeparator, entries)));
            return new RankCache(words, directory.resolve(name + ".aot"), command);
        } catch (IOException | UncheckedIOException | InvalidPathException none) {
            return null;
        }
    }

    /** Returns the path of the {@code java} program that a command's first word starts; null for another program. */
    private static @Nullable Path java(String word, Map<String, String> environment) throws IOException {
        if (!Path.of(word).endsWith("java")) {
            return null;
        }
        for (String directory : word.equals("java") ? environment.getOrDefault("PATH", "").split(File.pathSeparator)
                : new String[] {""}) {
            Path java = Path.of(directory, word);
            if (Files.isExecutable(java)) {
                return java.toRealPath();
            }
        }
        return null;
    }

    private static @Nullable Path directory(Map<String, String> environment) {
        String caches = environment.getOrDefault("XDG_CACHE_HOME", "");
        String home = environment.getOrDefault("HOME", "");
        Path directory = caches.isEmpty() ? Path.of(home, ".cache") : Path.of(caches);
        return directory.isAbsolute() ? directory.resolve("millrace/run") : null;
    }

    /**
     * Adds the kept options of a command to {@code kept}. Returns the command's class path. Returns an empty text if
     * the command's options exclude a cache. Also returns an empty text if the command has no class path, because Java
     * then uses the current directory.
     */
    private static String read(List<String> words, Map<String, String> environment, List<String> kept) {
        List<String> options = new ArrayList<>();
        for (String variable : List.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")) {
            options.addAll(List.of(environment.getOrDefault(variable, "").split("\\s+")));
        }
        options.addAll(words.subList(1, words.size()));
        String classPath = environment.getOrDefault("CLASSPATH", "");
        for (int i = 0; i + 1 < options.size(); i++) {
            String option = options.get(i);
            if (option.equals("-jar")) {
                return options.get(i + 1);
            } else if (CLASS_PATH.contains(option)) {
                classPath = options.get(++i);
            } else if (option.startsWith("--class-path=")) {
                classPath = option.substring(option.indexOf('=') + 1);
            } else if (WITH_VALUE.contains(option)) {
                kept.addAll(List.of(option, options.get(++i)));
            } else if (KEPT.matcher(option).matches()) {
                kept.add(option);
            } else if (REFUSED.matcher(option).matches()) {
                return "";
            } else if (!option.isEmpty() && !option.startsWith("-")) {
                break; // this word is the main class, and the program's arguments follow
            }
        }
        return classPath;
    }

    /**
     * Adds the jars of a class path entry, and the jars that their manifests name. The name of the cache depends on all
     * these jars, because a JVM does not detect changes of the jars that manifests name.
     */
    private static void addJars(String entry, Set<Path> jars) throws IOException {
        if (entry.equals("*") || entry.endsWith("/*")) {
            List<Path> found = new ArrayList<>();
            try (DirectoryStream<Path> directory =
                    Files.newDirectoryStream(Path.of(entry).resolveSibling(""), "*.{jar,JAR}")) {
                directory.forEach(found::add);
            }
            for (Path each : found.stream().sorted().toList()) {
                addJars(each.toString(), jars);
            }
            return;
        }
        Path jar = Path.of(entry).toAbsolutePath();
        if (!Files.exists(jar) || !jars.add(jar)) {
            return;
        }
        try (JarFile opened = new JarFile(jar.toFile())) {
            Manifest manifest = opened.getManifest();
            String more = manifest == null ? null : manifest.getMainAttributes().getValue(Attributes.Name.CLASS_PATH);
            for (String each : more == null ? new String[0] : more.strip().split("\\s+")) {
                addJars(jar.resolveSibling(each).toString(), jars);
            }
        }
    }

    /** Returns the command of the ranks, with the cache if it exists. */
    List<String> words() {
        try {
            if (Files.size(file) == 0 || !Integer.valueOf(User.ID).equals(User.ownerOf(file))) {
                return words;
            }
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
        } catch (IOException none) {
            return words;
        }
        List<String> with = new ArrayList<>(words);
        // the JVM ignores a cache that it cannot use, and the log options suppress the message
        with.addAll(1, List.of("-XX:AOTCache=" + file, "-Xlog:aot*=off", "-Xlog:cds*=off"));
        with.addAll(1, SHARED);
        return with;
    }

    /**
     * Starts a process that creates the cache, unless the cache exists. An empty file marks a cache that is being
     * created, or a failed attempt. A failed attempt is repeated only after {@link #DEADLINE}.
     */
    void makeInBackground() {
        try {
            Files.createDirectories(file.getParent());
            if (Files.exists(file) && (Files.size(file) > 0
                    || Files.getLastModifiedTime(file).toInstant().plus(DEADLINE).isAfter(Instant.now()))) {
                return;
            }
            Files.deleteIfExists(file);
            Files.createFile(file);
            List<String> command = new ArrayList<>(
                    List.of("nice", "-n", "19", Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", System.getProperty("java.class.path"),
                            RankCache.class.getName(), file.toString()));
            command.addAll(java);
            StartupCache.builder(command)
                    .redirectInput(new File("/dev/null"))
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
        } catch (IOException none) {
            // After an error, ranks start without a cache.
        }
    }

    /**
     * Creates a cache and deletes the least recently used caches.
     *
     * @param words file of the cache, followed by the command that creates it
     */
    public static void main(String[] words) throws IOException {
        Path file = Path.of(words[0]);
        StartupCache.make(List.of(words).subList(1, words.length), List.of(JoinTraining.class.getName()), file,
                DEADLINE);
        try (Stream<Path> files = Files.list(file.getParent())) {
            for (Path old : files.sorted(Comparator.comparing((Path each) -> each.toFile().lastModified()).reversed())
                    .skip(MAX_CACHES)
                    .toList()) {
                StartupCache.delete(old);
            }
        }
    }
}
