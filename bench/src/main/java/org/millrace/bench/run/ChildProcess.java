package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.report.ResultFile;
import org.millrace.bench.report.Results;

/** Starts a JVM like this one, for one variant. */
final class ChildProcess {

    /**
     * Options of every measuring JVM, which are part of the report. The JVM waits for compilations (-Xbatch) and does
     * not use C1 (-XX:-TieredCompilation), so every sample runs code that C2 has compiled.
     */
    static final List<String> FLAGS = List.of("-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-Xbatch",
            "-XX:-TieredCompilation", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow",
            "-XX:+IgnoreUnrecognizedVMOptions");
    /** Property with the location of the comparators for every JVM of a run. */
    static final String LIBRARY = "millrace.bench.library";
    private static final int FIRST_WITH_UNSAFE_OPTION = 23;
    private static final int OUTPUT_CHARACTERS = 2000;

    private final Path library;
    private final Path directory;
    private final long deadlineSeconds;
    private int number;

    ChildProcess(Path library, Path directory, long deadlineSeconds) {
        this.library = library;
        this.directory = directory;
        this.deadlineSeconds = deadlineSeconds;
    }

    /** Runs a variant, or only its pairs with the given ids. A failure becomes a note. */
    Results run(String suite, String variant, Effort effort, List<String> ids) throws IOException {
        Path result = directory.resolve("result-" + number++ + ".json");
        Path output = directory.resolve("output.txt");
        List<String> command = new ArrayList<>(java(library == null ? Child.NONE : library.toString()));
        command.addAll(List.of("child", suite, variant, effort.text(), result.toString(),
                ids.isEmpty() ? Child.NONE : String.join(",", ids)));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
        Thread killer = new Thread(process::destroyForcibly);
        Runtime.getRuntime().addShutdownHook(killer);
        try {
            boolean ended = process.waitFor(deadlineSeconds, TimeUnit.SECONDS);
            if (ended && process.exitValue() == 0 && Files.exists(result)) {
                return ResultFile.read(result);
            }
            String said = Files.readString(output);
            Results failed = new Results();
            String how = ended ? " ended with status " + process.exitValue()
                    : " was not ready after " + deadlineSeconds + " s";
            failed.notes()
                    .add(suite + ":" + variant + how + ": "
                            + said.substring(Math.max(0, said.length() - OUTPUT_CHARACTERS)).strip());
            return failed;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while " + suite + ":" + variant + " ran", e);
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
            Runtime.getRuntime().removeShutdownHook(killer);
        }
    }

    /** Returns the location of this run's comparators, null without comparators. */
    static Path library() {
        String library = System.getProperty(LIBRARY, Child.NONE);
        return library.equals(Child.NONE) ? null : Path.of(library);
    }

    /** Returns the command line up to this program's own arguments. */
    static List<String> java(String library) {
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        FLAGS.stream()
                .filter(flag -> Runtime.version().feature() >= FIRST_WITH_UNSAFE_OPTION
                        || !flag.startsWith("--sun-misc"))
                .forEach(command::add);
        command.add("-D" + LIBRARY + "=" + library);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        return command;
    }
}
