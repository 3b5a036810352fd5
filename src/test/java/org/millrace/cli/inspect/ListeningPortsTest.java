package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.logging.log4j.Level;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.FreePort;
import org.millrace.cli.ChildMain;
import org.millrace.cli.Main;
import org.millrace.cli.Run;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SharedDirectory;
import org.millrace.net.Warnings;
import org.millrace.net.connection.ListeningPorts;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceReader;

/** Each listening port of a process is logged once with its purpose. Commands show the port while it is open. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ListeningPortsTest {

    private Path directory;

    @BeforeEach
    void trace() {
        ProcessTrace.open(SharedDirectory.usual(), false);
        directory = Objects.requireNonNull(ProcessTrace.current()).path().getParent();
    }

    private List<String> open() throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {})
                .stream()
                .filter(process -> process.identity().equals(ProcessIdentity.CURRENT))
                .flatMap(process -> process.ports().stream())
                .map(port -> "listens on " + port)
                .toList();
    }

    private String run(String command) {
        String here = command + " --directory " + directory + " " + ProcessHandle.current().pid();
        return Run.of(here.split(" ")).out();
    }

    private void assertShown(String logged) throws IOException {
        assertTrue(open().contains(logged), () -> logged);
        String port = logged.substring("listens on ".length());
        for (String command : List.of("ps", "ps --json", "dump")) {
            assertTrue(run(command).contains(port), () -> port + " of " + run(command));
        }
    }

    @Test
    void aNetworksPortsAreLoggedAndShown() throws IOException {
        try (Warnings log = new Warnings(ListeningPorts.class.getName(), Level.INFO)) {
            SocketOptions rails = SocketOptions.defaults()
                    .withRails(List.of(InetAddress.ofLiteral("127.0.0.1"), InetAddress.ofLiteral("127.0.0.2")));
            try (SocketNetwork network = new SocketNetwork(rails)) {
                network.listen();
                assertEquals(
                        List.of("listens on * port N (lost streams)", "listens on 127.0.0.1 port N (connections)",
                                "listens on 127.0.0.2 port N (connections)"),
                        log.all().stream().map(line -> line.replaceFirst("port \\d+", "port N")).sorted().toList());
                for (String line : log.all()) {
                    assertShown(line);
                }
            }
            List<String> after = open();
            assertTrue(log.all().stream().noneMatch(after::contains), after::toString);
        }
    }

    @Test
    void thePortOfRankZeroIsLoggedAndShownUntilTheGroupIsComplete() throws Exception {
        int free = FreePort.find();
        String rendezvous = "tcp:127.0.0.1:" + free;
        String port = "listens on 127.0.0.1 port " + free + " (rendezvous)";
        try (Warnings log = new Warnings(ListeningPorts.class.getName(), Level.INFO)) {
            FutureTask<ControlPlane> zero =
                    new FutureTask<>(() -> ControlPlane.join(rendezvous, 0, 2, Duration.ofSeconds(60)));
            Thread.ofPlatform().daemon().start(zero);
            log.await(port);
            assertShown(port);
            ControlPlane one = ControlPlane.join(rendezvous, 1, 2, Duration.ofSeconds(60));
            assertTrue(!open().contains(port), "rank 0 closes its port before another rank has joined");
            one.close();
            zero.get().close();
            assertEquals(List.of(port), log.all());
        }
    }

    @Test
    void thePortOfMetricsIsLoggedAndShown(@TempDir Path own) throws Exception {
        ProcessBuilder builder = ChildMain.builder(Main.class, "metrics", "--listen", "127.0.0.1:0");
        builder.environment().putAll(Map.of("NCCL_DEBUG", "INFO", "MILLRACE_TRACE_DIRECTORY", own.toString()));
        Process metrics = builder.redirectErrorStream(true).start();
        try (BufferedReader log = metrics.inputReader()) {
            String line = ChildMain.readUntil(log, "listens on ");
            String port = line.substring(line.indexOf("127.0.0.1"));
            assertTrue(port.matches("127\\.0\\.0\\.1 port [1-9]\\d* \\(metrics\\)"), line);
            for (String command : List.of("ps", "dump")) {
                Run run = Run.of(command, "--directory", own.toString(), "" + metrics.pid());
                assertTrue(run.out().contains(port), run::toString);
            }
        } finally {
            metrics.destroyForcibly().waitFor();
        }
    }

    /** A new trace deletes old traces of its directory. */
    @Test
    void metricsOfANamedDirectoryAddNoTrace(@TempDir Path copies) throws Exception {
        ProcessBuilder builder =
                ChildMain.builder(Main.class, "metrics", "--listen", "127.0.0.1:0", "--directory", copies.toString());
        Process metrics = builder.redirectErrorStream(true).start();
        try (BufferedReader log = metrics.inputReader(); Stream<Path> files = Files.list(copies)) {
            ChildMain.readUntil(log, "/metrics");
            assertEquals(0, files.count());
        } finally {
            metrics.destroyForcibly().waitFor();
        }
    }
}
