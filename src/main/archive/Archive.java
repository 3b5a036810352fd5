import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.millrace.plugin.RuntimeModules;

/**
 * Creates the archive for machines without Java. It contains the plugin, the jar and a Java runtime with the modules
 * that they need. It also contains the command that starts the jar on this runtime, and a file for the shell to source.
 *
 * <p>
 * Maven's profile {@code release} runs it in the repository's root, with {@code target/millrace.jar} on the class
 * path. The arguments are the jar, the archive to create, and the time stamp of its files.
 */
final class Archive {

    public static void main(String[] args) throws IOException, InterruptedException {
        Path archive = Path.of(args[1]);
        String name = archive.getFileName().toString().replaceFirst("\\.tar\\.gz$", "");
        Path root = archive.resolveSibling("archive");
        deleteTree(root);
        Path directory = Files.createDirectories(root.resolve(name));
        Path runtime = directory.resolve("runtime");
        List<String> link = new ArrayList<>(List.of(RuntimeModules.jlinkLine().split(" ")));
        link.set(link.size() - 1, runtime.toString());
        link.addAll(List.of("--strip-debug", "--no-header-files", "--no-man-pages"));
        String tool = link.removeFirst();
        if (ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, link.toArray(String[]::new)) != 0) {
            throw new IOException("jlink made no runtime of " + System.getProperty("java.home"));
        }
        run(runtime.resolve("bin/java").toString(), "-jar", args[0], "plugin", "install", directory.toString(), "--java",
                runtime.toString(), "--no-cache");
        for (Path file : List.of(Path.of("LICENSE"), Path.of("NOTICE"), Path.of("src/main/archive/env.sh"))) {
            Files.copy(file, directory.resolve(file.getFileName()));
        }
        run("tar", "--create", "--gzip", "--file", archive.toString(), "--sort=name",
                "--owner=0", "--group=0", "--numeric-owner", "--mode=u+w,go+rX,go-w", "--mtime=" + args[2],
                "--directory", root.toString(), name);
        System.out.println(archive + ": " + Files.size(archive) + " bytes");
    }

    private static void run(String... command) throws IOException, InterruptedException {
        int exit = new ProcessBuilder(command).inheritIO().start().waitFor();
        if (exit != 0) {
            throw new IOException(command[0] + " failed with exit status " + exit);
        }
    }

    private static void deleteTree(Path directory) throws IOException {
        if (Files.exists(directory)) {
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }
}
