package org.millrace.collnet.aggregator;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** {@code millrace collnet aggregator} as a process of its own, for tests that kill it. */
public final class AggregatorProcess implements AutoCloseable {

    private final Process process;
    private final String where;

    private AggregatorProcess(Process process, String where) {
        this.process = process;
        this.where = where;
    }

    /** Starts one, and waits until it listens. */
    public static AggregatorProcess start(String secret, String tls) throws IOException {
        Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), "org.millrace.cli.Main", "collnet", "aggregator", "--listen",
                "127.0.0.1:0", "-D", "MILLRACE_SECRET=" + secret, "-D", "MILLRACE_TLS=" + tls, "-D",
                "MILLRACE_SOCKET_ADDRESSES=127.0.0.1").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String said = process.inputReader(StandardCharsets.UTF_8).readLine();
        assertTrue(said != null && said.startsWith("listening on 127.0.0.1:"), String.valueOf(said));
        return new AggregatorProcess(process, said.substring("listening on ".length()));
    }

    /** Host and port, as ranks name it. */
    public String where() {
        return where;
    }

    public long pid() {
        return process.pid();
    }

    /** Asks it to end, as Ctrl-C does; returns what it says of that, and its exit status in a line of its own. */
    public String end() throws IOException, InterruptedException {
        process.toHandle().destroy(); // the process's own would close what it says
        StringBuilder said = new StringBuilder();
        process.inputReader(StandardCharsets.UTF_8).lines().forEach(line -> said.append(line).append('\n'));
        return said.append(process.waitFor()).toString();
    }

    /** Ends it without a word (SIGKILL). */
    public void kill() {
        process.destroyForcibly();
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }
}
