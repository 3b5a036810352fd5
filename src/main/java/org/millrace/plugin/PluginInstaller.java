package org.millrace.plugin;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.library.BundledLibrary;

/**
 * Installs into a directory the files that a program without Java needs. The files are the library that NCCL opens, the
 * jar beside it, and optionally a link to a Java runtime.
 *
 * <pre>
 * DIR/libnccl-net-millrace.so
 * DIR/librccl-net.so, DIR/librccl-net-millrace.so -&gt; libnccl-net-millrace.so, the names that RCCL searches
 * DIR/millrace.jar
 * DIR/runtime -&gt; the Java runtime, or a directory that contains it, as in a release's archive; if missing, the
 *   library looks at MILLRACE_JAVA_HOME, JAVA_HOME, the PATH and /usr/lib/jvm
 * DIR/millrace-....aot: the cache of StartupCache, if it was created
 * </pre>
 */
public final class PluginInstaller {

    private static final String RUNTIME = "runtime";
    /**
     * Links to the library. Without {@code NCCL_NET_PLUGIN}, RCCL 2.29 or newer opens the first link. With
     * {@code NCCL_NET_PLUGIN=millrace}, RCCL opens the second link.
     */
    private static final List<String> RCCL_LINKS = List.of("librccl-net.so", "librccl-net-millrace.so");
    /** Names of all files that an installation writes. */
    private static final List<String> INSTALLED =
            List.of(BundledLibrary.NAME, RCCL_LINKS.getFirst(), RCCL_LINKS.getLast(), StartupCache.JAR, RUNTIME);
    /** Class from a library that Millrace needs. A jar without this class cannot run alone. */
    private static final String DEPENDENCY = "org/apache/logging/log4j/LogManager.class";

    private final Path jar;

    /** @throws MillraceException if the file is not a jar that contains Millrace's dependencies */
    public PluginInstaller(Path jar) {
        if (!Files.isRegularFile(jar)) {
            throw new MillraceException(jar + " is not a jar;"
                    + " build target/millrace.jar with 'mvn package', and run 'java -jar target/millrace.jar plugin"
                    + " install DIR'");
        }
        try (JarFile content = new JarFile(jar.toFile())) {
            if (content.getEntry(DEPENDENCY) == null) {
                throw new MillraceException(jar
                        + " does not contain what Millrace depends on; install from target/millrace.jar, which does");
            }
        } catch (IOException e) {
            throw new MillraceException("cannot read " + jar + ": " + e.getMessage(), e);
        }
        this.jar = jar;
    }

    public static PluginInstaller ofRunningJar() {
        try {
            return new PluginInstaller(
                    Path.of(PluginInstaller.class.getProtectionDomain().getCodeSource().getLocation().toURI()));
        } catch (URISyntaxException e) {
            throw new MillraceException("cannot determine which jar this program runs from", e);
        }
    }

    /** {@return the runtime in an installation directory; the running Java if the directory contains no runtime} */
    public static Path javaFor(Path directory) {
        Path own = directory.resolve(RUNTIME);
        return isOwn(own) ? own : Path.of(System.getProperty("java.home"));
    }

    private static boolean isOwn(Path runtime) {
        return Files.isDirectory(runtime, LinkOption.NOFOLLOW_LINKS);
    }

    /**
     * Installs the files. Existing files are replaced in one step, so that running programs are not disturbed.
     *
     * @param directory target, created if it does not exist
     * @param javaHome  Java runtime, release 22 or newer; null to leave the choice to the environment
     * @return the library's path, for {@code NCCL_NET_PLUGIN}
     * @throws MillraceException if the installation fails; the message names the remedy
     */
    public Path install(Path directory, @Nullable Path javaHome) {
        if (javaHome != null && !Files.exists(javaHome.resolve("lib/server/libjvm.so"))) {
            throw new MillraceException(javaHome + " is not the home of a Java: it has no lib/server/libjvm.so");
        }
        String unfit = javaHome == null ? null : RuntimeModules.problemOf(javaHome);
        if (unfit != null) {
            throw new MillraceException(unfit);
        }
        if (directory.toString().isBlank()) {
            throw new MillraceException("the name of the directory to install into is empty; . is the current one");
        }
        if (Files.exists(directory) && !Files.isDirectory(directory)) {
            throw new MillraceException("cannot install the plugin into " + directory + ": it is no directory");
        }
        Path own = directory.resolve(RUNTIME);
        try {
            if (javaHome != null && isOwn(own) && !Files.isSameFile(own, javaHome)) {
                throw new MillraceException(own + " is a Java of its own, and stays; to have " + javaHome
                        + " in its place delete it, or install into another directory");
            }
            Path home = Files.createDirectories(directory).toRealPath();
            Path library = home.resolve(BundledLibrary.NAME);
            BundledLibrary.checkName(library);
            Path fresh = Files.createTempDirectory(home, ".install");
            try {
                replace(Files.copy(jar, fresh.resolve(StartupCache.JAR)), home.resolve(StartupCache.JAR));
                BundledLibrary.extract(fresh.resolve(BundledLibrary.NAME));
                replace(fresh.resolve(BundledLibrary.NAME), library);
                for (String link : RCCL_LINKS) {
                    replace(Files.createSymbolicLink(fresh.resolve(link), library.getFileName()), home.resolve(link));
                }
                if (javaHome != null && !isOwn(home.resolve(RUNTIME))) {
                    replace(Files.createSymbolicLink(fresh.resolve(RUNTIME), javaHome.toRealPath()),
                            home.resolve(RUNTIME));
                }
            } finally {
                for (String name : INSTALLED) {
                    Files.deleteIfExists(fresh.resolve(name));
                }
                Files.delete(fresh);
            }
            deleteCaches(home);
            return library;
        } catch (IOException e) {
            throw new MillraceException("cannot install the plugin into " + directory + ": " + e.getMessage()
                    + "; may this user write there?", e);
        }
    }

    /** Deletes the startup caches, because they are useless for another jar or Java runtime. */
    private static void deleteCaches(Path home) throws IOException {
        try (Stream<Path> files = Files.list(home)) {
            for (Path file : (Iterable<Path>) files.filter(StartupCache::isCache)::iterator) {
                Files.delete(file);
            }
        }
    }

    /** Returns whether {@link #install} or {@link StartupCache} writes a file of this name. */
    public static boolean isInstalled(Path file) {
        return INSTALLED.contains(file.getFileName().toString()) || StartupCache.isCache(file);
    }

    private static void replace(Path from, Path to) throws IOException {
        Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /**
     * {@return the line for a user's shell: {@code export NCCL_NET_PLUGIN='...'}}
     *
     * @param library the path that {@link #install} returned
     */
    public static String exportLine(Path library) {
        return "export NCCL_NET_PLUGIN='" + library.toString().replace("'", "'\\''") + "'";
    }
}
