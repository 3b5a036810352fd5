package org.millrace.plugin;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;

/**
 * A jar of the classes under test, of Log4j's interface and of picocli. Java can start it in the same way as the jar of
 * the build. It is not a module.
 */
public final class WholeJar {

    private WholeJar() {}

    /** Writes a copy of the jar. The jar is built once for all tests. */
    public static Path write(Path jar) throws Exception {
        return Files.copy(HostProgram.jar(), jar, StandardCopyOption.REPLACE_EXISTING);
    }

    static Path make(Path jar) throws IOException, InterruptedException {
        HostProgram.library(); // this call skips the test if the build made no library
        Path faulty = PlantedFault.NAME.isEmpty() ? null : PlantedFault.compile(PlantedFault.NAME);
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), manifest())) {
            for (String entry : System.getProperty("java.class.path").split(":")) {
                if (Path.of(entry).endsWith("target/classes")) {
                    addAll(out, Path.of(entry), faulty);
                } else if (entry.contains("log4j-api") || entry.contains("picocli")) {
                    try (var zip = FileSystems.newFileSystem(Path.of(entry))) {
                        addAll(out, zip.getPath("/"), null);
                    }
                }
            }
        }
        return jar;
    }

    private static Manifest manifest() {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().putValue("Manifest-Version", "1.0");
        manifest.getMainAttributes().putValue("Main-Class", "org.millrace.cli.Start");
        manifest.getMainAttributes().putValue("Enable-Native-Access", "ALL-UNNAMED");
        return manifest;
    }

    /** Adds a folder's files. If the folder {@code instead} has a file of the same name, adds that file. */
    private static void addAll(JarOutputStream out, Path root, Path instead) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                String name = root.relativize(file).toString();
                if (!name.equals("module-info.class")
                        && (!name.startsWith("META-INF/") || name.matches("META-INF/(native|services)/.*"))) {
                    out.putNextEntry(new ZipEntry(name));
                    Files.copy(instead != null && Files.exists(instead.resolve(name)) ? instead.resolve(name) : file,
                            out);
                }
            }
        }
    }
}
