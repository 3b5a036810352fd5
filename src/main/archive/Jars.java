import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Completes the jars of a build. It adds the module descriptor to the library's jar, and writes {@code millrace.jar},
 * the command line with all dependencies in one jar.
 *
 * <p>
 * Maven runs it in the repository's root: {@code java src/main/archive/Jars.java TARGET NAME VERSION TIME CLASSPATH}.
 * NAME is the library's jar in the directory TARGET, without its suffix. TIME is the time stamp of all files in the
 * jars. CLASSPATH begins with the directory of the classes.
 *
 * <p>
 * The module descriptor is compiled here. Among the other classes it would turn the compilation of the generated classes
 * into the compilation of a module. Maven's jar plugin would let the jar tool of Maven's own JDK read it, and that JDK
 * may be too old.
 */
final class Jars {

    /** Release of Java that the module descriptor is compiled for. */
    private static final String RELEASE = "22";
    /**
     * Files that are not copied. A single jar on the class path is no module, and does not keep the signatures of its
     * parts.
     */
    private static final Pattern OMITTED = Pattern.compile("(META-INF/versions/\\d+/)?module-info\\.class"
            + "|META-INF/(MANIFEST\\.MF|INDEX\\.LIST|[^/]+\\.(SF|DSA|RSA))|.*/");
    /** Files that are joined, because several jars have them. */
    private static final Pattern JOINED = Pattern.compile("META-INF/(services/.*|NOTICE)");
    /** Gson's annotations for compilers, and Chronicle Bytes, which only programs use. */
    private static final Pattern UNUSED = Pattern.compile("error_prone_annotations|net/openhft|org/slf4j");

    private final Map<String, byte[]> entries = new LinkedHashMap<>();

    public static void main(String[] args) throws IOException {
        Path target = Path.of(args[0]);
        Path library = target.resolve(args[1] + ".jar");
        Path classes = target.resolve("classes");
        Path module = target.resolve("module");
        run("javac", "--release", RELEASE, "-Xlint:all,-path", "-Werror", "-d", module.toString(), "-p", args[4],
                "--patch-module", "org.millrace=" + classes, "src/main/module/module-info.java");
        run("jar", "--update", "--date", args[3], "--file", library.toString(), "--module-version", args[2], "-C",
                module.toString(), "module-info.class");
        Jars all = new Jars();
        all.addJar(library);
        all.addClasses(classes);
        for (String part : args[4].split(File.pathSeparator)) {
            if (part.endsWith(".jar") && !UNUSED.matcher(part).find()) {
                all.addJar(Path.of(part));
            }
        }
        Path javadoc = Files.createDirectories(target.resolve("reports/apidocs/META-INF"));
        for (String text : List.of("LICENSE", "NOTICE")) { // of a release's Javadoc jar
            Files.copy(Path.of(text), javadoc.resolve(text), StandardCopyOption.REPLACE_EXISTING);
        }
        all.write(target.resolve("millrace.jar"), args[2], OffsetDateTime.parse(args[3]));
    }

    private static void run(String tool, String... arguments) throws IOException {
        PrintWriter out = new PrintWriter(System.err, true);
        if (ToolProvider.findFirst(tool).orElseThrow().run(out, out, arguments) != 0) {
            throw new IOException(tool + " failed");
        }
    }

    private void addJar(Path jar) throws IOException {
        try (ZipFile file = new ZipFile(jar.toFile())) {
            for (Enumeration<? extends ZipEntry> all = file.entries(); all.hasMoreElements();) {
                ZipEntry entry = all.nextElement();
                try (InputStream in = file.getInputStream(entry)) {
                    add(entry.getName(), in.readAllBytes());
                }
            }
        }
    }

    /** Adds the classes of the command line, which the library's jar excludes. */
    private void addClasses(Path classes) throws IOException {
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile).sorted()::iterator) {
                String name = classes.relativize(file).toString();
                if (!entries.containsKey(name)) {
                    add(name, Files.readAllBytes(file));
                }
            }
        }
    }

    private void add(String name, byte[] content) {
        if (OMITTED.matcher(name).matches()) {
            return;
        }
        byte[] present = entries.putIfAbsent(name, content);
        if (present != null && JOINED.matcher(name).matches()) {
            ByteArrayOutputStream joined = new ByteArrayOutputStream();
            joined.writeBytes(present);
            joined.write('\n');
            joined.writeBytes(content);
            entries.put(name, joined.toByteArray());
        }
    }

    private void write(Path jar, String version, OffsetDateTime time) throws IOException {
        LocalDateTime stamp = time.withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime();
        Manifest manifest = new Manifest();
        Attributes attributes = manifest.getMainAttributes();
        attributes.putValue("Manifest-Version", "1.0");
        attributes.putValue("Main-Class", "org.millrace.cli.Start");
        attributes.putValue("Enable-Native-Access", "ALL-UNNAMED");
        attributes.putValue("Multi-Release", "true");
        attributes.putValue("Implementation-Title", "Millrace");
        attributes.putValue("Implementation-Version", version);
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        manifest.write(lines);
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            write(out, "META-INF/MANIFEST.MF", lines.toByteArray(), stamp);
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                write(out, entry.getKey(), entry.getValue(), stamp);
            }
        }
    }

    private static void write(JarOutputStream out, String name, byte[] content, LocalDateTime stamp)
            throws IOException {
        ZipEntry entry = new ZipEntry(name);
        entry.setTimeLocal(stamp);
        out.putNextEntry(entry);
        out.write(content);
        out.closeEntry();
    }
}
