package org.millrace.library;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Directories that may contain the libraries of CUDA and AMD, and that the dynamic loader does not search. They belong
 * to the system, to the toolkit, or to Python packages.
 */
public final class LibraryDirectories {

    private static final List<String> SYSTEM = List.of("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
            "usr/lib64", "usr/lib", "usr/local/lib", "opt/rocm/lib");

    private final Path root;
    private final UnaryOperator<String> environment;
    private final Set<Path> found = new LinkedHashSet<>();

    private LibraryDirectories(Path root, UnaryOperator<String> environment) {
        this.root = root;
        this.environment = environment;
    }

    /**
     * Lists the existing directories.
     *
     * @param root        root of the file system; {@code /} except in tests
     * @param environment returns the value of an environment variable; null for a variable that is not set
     * @param wheels      directories of the library in Python packages, relative to {@code site-packages}, for instance
     *                    {@code "nvidia/nccl/lib"}
     * @return existing directories in the order of the search: first the environment's Python, then the toolkit (newest
     *         version first), the system, and other Python installations
     */
    public static List<Path> list(Path root, UnaryOperator<String> environment, List<String> wheels) {
        LibraryDirectories directories = new LibraryDirectories(root, environment);
        for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
            String prefix = environment.apply(variable);
            if (prefix != null && !prefix.isBlank()) {
                directories.python(Path.of(prefix, "lib"), wheels);
                directories.add(Path.of(prefix, "lib"));
            }
        }
        directories.toolkit();
        SYSTEM.forEach(path -> directories.add(root.resolve(path)));
        directories.python(root.resolve("usr/local/lib"), wheels);
        directories.python(root.resolve("usr/lib"), wheels);
        String home = environment.apply("HOME");
        if (home != null && !home.isBlank()) {
            directories.python(Path.of(home, ".local", "lib"), wheels);
        }
        return List.copyOf(directories.found);
    }

    private void toolkit() {
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            String home = environment.apply(variable);
            if (home != null && !home.isBlank()) {
                libraries(Path.of(home));
            }
        }
        children(root.resolve("usr/local"), "cuda*").forEach(this::libraries);
    }

    private void libraries(Path toolkit) {
        add(toolkit.resolve("lib64"));
        add(toolkit.resolve("lib"));
    }

    private void python(Path lib, List<String> wheels) {
        for (Path python : children(lib, "python3*")) {
            for (String packages : List.of("site-packages", "dist-packages")) {
                wheels.forEach(wheel -> add(python.resolve(packages).resolve(wheel)));
            }
        }
    }

    /** Adds a directory if it exists. A directory that several links lead to is added only once. */
    private void add(Path directory) {
        if (Files.isDirectory(directory)) {
            try {
                found.add(directory.toRealPath());
            } catch (IOException vanished) {
                // The directory was deleted after the check, so it contains no library.
            }
        }
    }

    /** Lists subdirectories, newest version first: 13.0 before 12.10 before 12.9. */
    private static List<Path> children(Path directory, String glob) {
        List<Path> children = new ArrayList<>();
        if (Files.isDirectory(directory)) {
            try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory, glob)) {
                stream.forEach(children::add);
            } catch (IOException | DirectoryIteratorException unreadable) {
                // An unreadable directory contains no usable library.
            }
        }
        children.sort(Comparator.comparing(LibraryDirectories::version).reversed());
        return children;
    }

    private static String version(Path path) {
        StringBuilder key = new StringBuilder();
        for (String number : path.getFileName().toString().replaceAll("[^0-9]+", " ").strip().split(" ")) {
            key.append(number.isEmpty() ? "99999" : "%5s".formatted(number));
        }
        return key.toString();
    }
}
