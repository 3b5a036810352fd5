package org.millrace.plugin;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.foreign.CFunction;
import org.millrace.plugin.host.NativeMemory;

/**
 * Cache that makes a JVM start faster. It contains data of an earlier run: loaded and linked classes, and profiles of
 * their methods for the JIT compiler (JEP 483, 514, 515). A JVM creates the cache while it runs a program. A later JVM
 * accepts the cache only if it has the same class path and Java release as the JVM that created the cache. The cache of
 * the plugin's JVM is created from a {@link TrainingRun}.
 */
public final class StartupCache {

    /**
     * Pattern of the names of caches. {@code jvm_options.c} computes the name from the jar, and also contains
     * {@link #OLDEST_JAVA}.
     */
    private static final Pattern NAMES = Pattern.compile("millrace-[0-9a-f]{16}\\.aot");
    private static final int NAME_BYTES = 64;
    private static final int OLDEST_JAVA = 25;

    /** Types of file systems that only one machine can access. {@code jvm_options.c} contains this list, too. */
    private static final Set<String> LOCAL = Set.of("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "overlay",
            "f2fs", "squashfs", "zfs", "bcachefs");

    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final int WORDS_OF_FAILURE = 500;

    /** Name of the jar beside the plugin's library. */
    static final String JAR = "millrace.jar";

    private StartupCache() {}

    /**
     * Result of an attempt to create the cache.
     *
     * @param made   whether a cache exists now
     * @param report a line for the user
     */
    public record Outcome(boolean made, String report) {

        private static Outcome none(String why) {
            return new Outcome(false, "no cache, so the first operations of a process are slower: " + why);
        }
    }

    /**
     * Creates the cache of an installation. An existing cache is replaced on success.
     *
     * @param library  the path that {@link PluginInstaller#install} returned
     * @param javaHome home directory of the Java that will run the plugin
     */
    public static Outcome make(Path library, Path javaHome) {
        Path java = javaHome.resolve("bin/java");
        if (!Files.isExecutable(java)) {
            return Outcome.none("there is no " + java + " to make it with");
        }
        int release = release(javaHome);
        if (release < OLDEST_JAVA) {
            return Outcome.none("it takes Java " + OLDEST_JAVA + " or newer, and " + javaHome
                    + (release == 0 ? " does not state its release" : " is " + release));
        }
        Shim shim = new Shim(library);
        Path jar = library.resolveSibling(JAR);
        List<String> command = new ArrayList<>(List.of(java.toString()));
        command.addAll(shim.options());
        command.addAll(List.of("-cp", jar.toString()));
        return make(command, List.of(TrainingRun.class.getName(), library.toString()), shim.cache(jar), DEADLINE);
    }

    /**
     * Creates a cache. An existing cache is replaced on success.
     *
     * @param java     command of Java, with the options and the class path of the cache
     * @param program  program that the JVM runs to create the cache: a main class and its arguments
     * @param cache    path of the cache
     * @param deadline maximum duration of the program
     */
    public static Outcome make(List<String> java, List<String> program, Path cache, Duration deadline) {
        long begin = System.nanoTime();
        try {
            Path fresh = Files.createTempDirectory(cache.getParent(), ".cache");
            try {
                Path made = fresh.resolve(cache.getFileName());
                List<String> command = new ArrayList<>(java);
                command.add("-XX:AOTCacheOutput=" + made);
                command.addAll(program);
                String problem = run(command, fresh.resolve("output"), deadline);
                if (problem == null && !Files.exists(made)) {
                    problem = "the JVM that was started to make it printed nothing, and made none";
                }
                if (problem != null) {
                    return Outcome.none(problem);
                }
                Files.move(made, cache, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            } finally {
                delete(fresh);
            }
            return new Outcome(true, "%s (%d bytes), made in %.1f s".formatted(cache, Files.size(cache),
                    (System.nanoTime() - begin) / 1e9));
        } catch (IOException e) {
            return Outcome.none(e.getMessage());
        }
    }

    /** {@return whether the JVM of a Java runtime can create and use caches of this kind} */
    public static boolean isKnownTo(Path javaHome) {
        return release(javaHome) >= OLDEST_JAVA;
    }

    /**
     * Returns whether a directory, or its nearest existing parent, belongs to this machine alone. A JVM must not map a
     * cache on a network file system: another machine can truncate or delete the file, and SIGBUS then ends the JVM.
     */
    public static boolean isLocal(Path directory) throws IOException {
        Path existing = directory;
        while (!Files.exists(existing)) {
            existing = existing.getParent();
        }
        return LOCAL.contains(Files.getFileStore(existing).type());
    }

    /** Returns the release number in the file {@code release} of a Java runtime; 0 if the file contains none. */
    static int release(Path javaHome) {
        Properties release = new Properties();
        try (InputStream in = Files.newInputStream(javaHome.resolve("release"))) {
            release.load(in);
            String version = release.getProperty("JAVA_VERSION", "").replace("\"", "");
            return version.isEmpty() ? 0 : Runtime.Version.parse(version).feature();
        } catch (IOException | IllegalArgumentException unknown) {
            return 0;
        }
    }

    /** Creates a process builder. Its environment lacks the user's variables for NCCL, Millrace and Java. */
    public static ProcessBuilder builder(List<String> command) {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment()
                .keySet()
                .removeIf(name -> name.startsWith("NCCL_") || name.startsWith("MILLRACE_") || name.contains("JAVA")
                        || name.startsWith("JDK_"));
        return builder;
    }

    /** Runs the program. Returns the problem, or null if there was none. */
    private static @Nullable String run(List<String> command, Path output, Duration deadline) throws IOException {
        Process process = builder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
        try {
            if (!process.waitFor(deadline.toSeconds(), TimeUnit.SECONDS)) {
                return "the training run did not end within " + deadline.toSeconds() + " s";
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new MillraceException("the thread was interrupted while the cache was made");
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        if (process.exitValue() == 0) {
            return null;
        }
        String words = Files.readString(output).strip().replaceAll("\\s*\\R\\s*", " | ");
        return "the training run ended with exit status " + process.exitValue() + ": "
                + words.substring(Math.max(0, words.length() - WORDS_OF_FAILURE));
    }

    /** Deletes a file, or a directory that contains only files. */
    public static void delete(Path path) throws IOException {
        if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
            try (var files = Files.list(path)) {
                for (Path file : (Iterable<Path>) files::iterator) {
                    Files.delete(file);
                }
            }
        }
        Files.delete(path);
    }

    public static boolean isCache(Path file) {
        return NAMES.matcher(file.getFileName().toString()).matches();
    }

    /** The plugin's library. The library can start a JVM, and lists the options of that JVM. */
    @SuppressWarnings("restricted") // only Millrace's own library is called
    private static final class Shim {

        private final SymbolLookup library;

        Shim(Path library) {
            this.library = SymbolLookup.libraryLookup(library, Arena.global());
        }

        private CFunction function(String name) {
            return CFunction.at(library.find(name).orElseThrow());
        }

        /**
         * Returns the options of a JVM that the library starts. A cache is valid only for a JVM with the same options
         * as the JVM that created the cache.
         */
        List<String> options() {
            List<String> options = new ArrayList<>();
            long list = function("millraceJavaOptions").call();
            while (NativeMemory.getLong(list) != 0) {
                options.add(NativeMemory.string(NativeMemory.getLong(list)));
                list += Long.BYTES;
            }
            return options;
        }

        Path cache(Path jar) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment name = arena.allocate(NAME_BYTES);
                int result = (int) function("millraceCacheName").call(arena.allocateFrom(jar.toString()).address(),
                        name.address(), NAME_BYTES);
                if (result != 0) {
                    throw new MillraceException("cannot read " + jar);
                }
                return jar.resolveSibling(name.getString(0));
            }
        }
    }
}
