package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A host on this machine: a process with its own interfaces, name, {@code /etc/hosts}, {@code /sys} and
 * {@code /dev/shm}. Other processes start in the namespaces of this process. All these processes end with this JVM.
 * Tests with such hosts need root and have the tag {@code root}.
 */
public final class TestHost implements AutoCloseable {

    private static final List<String> UNSHARE = List.of("unshare", "--net", "--uts", "--mount");
    private static final String PREPARE = """
            echo "$0" > /proc/sys/kernel/hostname
            mount -t sysfs sysfs /sys
            mount -t tmpfs -o size=1g tmpfs /dev/shm
            mount --bind "$1" /etc/hosts
            ip link set lo up
            echo ready
            exec cat""";
    private static final long TIMEOUT_SECONDS = 60;

    private final Path hosts;
    private final Process holder;
    private final List<Process> children = new ArrayList<>();

    private TestHost(String name) throws IOException {
        hosts = Files.createTempFile("hosts", null);
        Files.writeString(hosts, "127.0.0.1 localhost\n::1 localhost\n");
        List<String> command = new ArrayList<>(UNSHARE);
        Collections.addAll(command, "sh", "-ec", PREPARE, name, hosts.toString());
        // the process reads from a pipe of this JVM, and ends when the JVM ends
        holder = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = holder.inputReader().readLine();
        if (!"ready".equals(said)) {
            close();
            skip(said);
        }
    }

    /** Creates a host with a name, and with only a loopback interface. */
    public static TestHost named(String name) throws IOException {
        try {
            return new TestHost(name);
        } catch (IOException e) { // The program unshare is not installed.
            skip(e.getMessage());
            throw e;
        }
    }

    private static void skip(String why) {
        String message = "SKIPPED, as hosts in namespaces cannot be made here (they need root, unshare, ip): " + why;
        System.err.println(message);
        abort(message);
    }

    /** Connects two hosts by one new interface on each. The interfaces are up and have only link-local addresses. */
    public static void connect(TestHost one, String nameThere, TestHost other, String otherName) throws Exception {
        one.run("ip link add " + nameThere + " type veth peer name " + otherName + " netns " + other.holder.pid());
        one.run("ip link set " + nameThere + " up");
        other.run("ip link set " + otherName + " up");
    }

    /** Returns the number of the process that holds the host's namespaces. This process lives as long as the host. */
    public long pid() {
        return holder.pid();
    }

    /** Returns the path of the host's {@code /dev/shm} for this process. */
    public Path sharedDirectory() {
        return Path.of("/proc/" + pid() + "/root/dev/shm");
    }

    /** Replaces the host's {@code /etc/hosts}. */
    public void hosts(String lines) throws IOException {
        Files.writeString(hosts, lines);
    }

    /** Runs a shell script on the host. The script must succeed. Returns its output. */
    public String run(String script) throws IOException, InterruptedException {
        Process shell = start(entering(List.of("sh", "-ec", script)).redirectErrorStream(true));
        String output = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(shell.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS), script);
        assertEquals(0, shell.exitValue(), () -> script + ": " + output);
        return output;
    }

    /**
     * Starts a program of the tests in a JVM on the host. The program writes errors to this process's standard error.
     */
    public Process java(Class<?> program, String... arguments) throws IOException {
        return java(Map.of(), program, arguments);
    }

    /** Starts a program in a JVM on the host, with additional environment variables. */
    public Process java(Map<String, String> environment, Class<?> program, String... arguments) throws IOException {
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "--enable-native-access=ALL-UNNAMED",
                        "-cp", System.getProperty("java.class.path"), program.getName()));
        Collections.addAll(command, arguments);
        ProcessBuilder java = entering(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        java.environment().putAll(environment);
        return start(java);
    }

    private ProcessBuilder entering(List<String> command) {
        List<String> entering = new ArrayList<>(List.of("nsenter", "--target", "" + holder.pid(), "--net", "--uts",
                "--mount", "--wd=" + System.getProperty("user.dir"), "--"));
        entering.addAll(command);
        return new ProcessBuilder(entering);
    }

    private Process start(ProcessBuilder command) throws IOException {
        Process child = command.start();
        children.add(child);
        return child;
    }

    @Override
    public void close() throws IOException {
        children.add(holder);
        children.forEach(Process::destroyForcibly);
        // The loop waits for the end of each child, because other tests count this process's children.
        for (Process child : children) {
            child.onExit().join();
        }
        Files.delete(hosts);
    }
}
