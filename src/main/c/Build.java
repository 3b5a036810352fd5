import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;

/**
 * Compiles the plugin's shared library for the machine it runs on. Needs only a C compiler and the JDK's {@code jni.h}.
 * Also compiles the class that reports a Java that is too old to run Millrace. That class is compiled for such an old
 * Java.
 *
 * <p> Maven starts it in the repository's root, with the directory of the classes as its argument. The library becomes
 * a resource of the jar, {@code META-INF/native/linux-ARCH/libnccl-net-millrace.so}. The compiler is {@code $CC}, or
 * {@code cc}. A library that is newer than its sources is not compiled again. Without a compiler the rest of Millrace
 * is built.
 */
final class Build {

    private static final Path LAUNCHER = Path.of("src", "main", "launcher");
    private static final Path SOURCES = Path.of("src", "main", "c");
    private static final Path HEADERS = Path.of("headers");
    private static final String LIBRARY = "libnccl-net-millrace.so";

    public static void main(String[] args) throws IOException, InterruptedException {
        // A class that is compiled again makes Maven compile all tests again.
        Path start = Path.of("org", "millrace", "cli", "Start");
        Path source = LAUNCHER.resolve(start + ".java");
        if (!isFresh(Path.of(args[0]).resolve(start + ".class"), source) && ToolProvider.findFirst("javac").orElseThrow()
                .run(System.out, System.err, "--release", "11", "-Xlint:all", "-Werror", "-proc:none", "-d", args[0],
                        source.toString()) != 0) {
            System.exit(1);
        }
        if (!System.getProperty("os.name").equals("Linux")) {
            System.out.println("The NCCL plugin is not built here: NCCL runs on Linux, and this is "
                    + System.getProperty("os.name") + ".");
            return;
        }
        Path library = Path.of(args[0], "META-INF", "native", platform(), LIBRARY);
        if (isFresh(library, SOURCES, HEADERS)) {
            return;
        }
        Files.createDirectories(library.getParent());
        compile(library);
    }

    private static String platform() {
        String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return "linux-" + (arch.equals("amd64") ? "x86_64" : arch);
    }

    private static boolean isFresh(Path target, Path... roots) throws IOException {
        if (!Files.exists(target)) {
            return false;
        }
        FileTime built = Files.getLastModifiedTime(target);
        for (Path root : roots) {
            try (Stream<Path> sources = Files.walk(root)) {
                for (Path source : (Iterable<Path>) sources::iterator) {
                    if (Files.getLastModifiedTime(source).compareTo(built) > 0) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    private static void compile(Path library) throws IOException, InterruptedException {
        Path jni = Path.of(System.getProperty("java.home"), "include");
        List<String> command = new ArrayList<>(List.of(compiler(), "-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread",
                "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
                // The JVM lives as long as the process. NCCL's dlclose must therefore not unmap code that its threads
                // may call.
                "-Wl,-z,nodelete", "-Wl,-z,defs", "-Wl,-z,relro,-z,now",
                // After a process's last communicator NCCL forgets the plugin's name and looks for its default name.
                // The library is still loaded and has this name.
                "-Wl,-soname,libnccl-net.so", "-I", HEADERS.toString(), "-I", jni.toString(), "-I",
                jni.resolve("linux").toString(), "-o", library.toString()));
        try (Stream<Path> files = Files.list(SOURCES)) {
            files.map(Path::toString).filter(name -> name.endsWith(".c")).sorted().forEach(command::add);
        }
        command.add("-ldl");
        int exit;
        try {
            exit = new ProcessBuilder(command).inheritIO().start().waitFor();
        } catch (IOException e) {
            Files.deleteIfExists(library); // the library of an earlier build, from older sources
            if (System.getenv("CC") != null) {
                System.err.println("The NCCL plugin was not built: CC names a C compiler that cannot be started: " + e
                        .getMessage() + ".");
                System.exit(1);
            }
            System.err.println("[WARNING] The NCCL plugin is NOT built, and its tests are skipped: there is no C compiler"
                    + " 'cc'. Install one (Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora, RHEL: dnf install"
                    + " gcc), or name yours in CC. The rest of Millrace is built, and works without.");
            return;
        }
        if (exit != 0) {
            System.err.println("The NCCL plugin was not built: " + compiler() + " failed with exit status " + exit
                    + "; its messages are above. It needs the C library's headers and " + jni + "/jni.h.");
            System.exit(1);
        }
    }

    private static String compiler() {
        String chosen = System.getenv("CC");
        return chosen == null || chosen.isBlank() ? "cc" : chosen;
    }
}
