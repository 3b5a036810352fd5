import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;

/**
 * Compiles and runs the stress tests. They are compiled separately, because jcstress generates code for its tests.
 *
 * <p>
 * Maven's profile {@code jcstress} runs it in the repository's root: {@code java -cp CLASSPATH src/jcstress/Stress.java
 * TARGET RELEASE ARGUMENTS...}. ARGUMENTS are arguments of jcstress.
 */
final class Stress {

    public static void main(String[] args) throws IOException, InterruptedException {
        Path target = Path.of(args[0]).toAbsolutePath();
        String classes = target.resolve("jcstress").toString();
        String classPath = System.getProperty("java.class.path");
        List<String> options = new ArrayList<>(
                List.of("--release", args[1], "-proc:full", "-d", classes, "-cp", classPath));
        try (Stream<Path> sources = Files.walk(Path.of("src", "jcstress", "java"))) {
            sources.map(Path::toString).filter(name -> name.endsWith(".java")).sorted().forEach(options::add);
        }
        if (ToolProvider.findFirst("javac").orElseThrow().run(System.out, System.err, options.toArray(String[]::new))
                != 0) {
            System.exit(1);
        }
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "--enable-native-access=ALL-UNNAMED", "-cp", classes + File.pathSeparator + classPath,
                "org.openjdk.jcstress.Main"));
        command.addAll(List.of(args).subList(2, args.length));
        command.addAll(List.of("-r", target.resolve("jcstress-report").toString()));
        System.exit(new ProcessBuilder(command).directory(target.toFile()).inheritIO().start().waitFor());
    }
}
