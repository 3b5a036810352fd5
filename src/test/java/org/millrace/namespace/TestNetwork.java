package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Hosts on one network, {@code eth0} of each at a bridge that is a host of its own. Frames are dropped without a word
 * by giving the sender a hardware address of the receiver that nobody has.
 */
final class TestNetwork implements AutoCloseable {

    private static final String NOBODY = "02:00:00:00:00:99";
    private static final long PATIENCE_SECONDS = 30;

    private final TestHost bridge;
    final List<TestHost> hosts = new ArrayList<>();

    TestNetwork(int count) throws Exception {
        bridge = TestHost.named("bridge");
        boolean complete = false;
        try {
            bridge.run("ip link add bridge type bridge forward_delay 0; ip link set bridge up");
            for (int i = 0; i < count; i++) {
                TestHost host = TestHost.named(name(i));
                hosts.add(host);
                TestHost.connect(bridge, "port" + i, host, "eth0");
                bridge.run("ip link set port" + i + " master bridge");
                host.run("ip address add " + address(i) + "/24 dev eth0");
            }
            complete = true;
        } finally {
            if (!complete) {
                close();
            }
        }
    }

    static String name(int host) {
        return "host" + host;
    }

    static String address(int host) {
        return "10.77.0." + (host + 1);
    }

    /** Frames from one host to another are dropped from now on. */
    void silence(int from, int to) throws Exception {
        hosts.get(from).run("ip neighbour replace " + address(to) + " lladdr " + NOBODY + " nud permanent dev eth0");
    }

    /** They arrive again. */
    void hear(int from, int to) throws Exception {
        hosts.get(from).run("ip neighbour delete " + address(to) + " dev eth0");
    }

    /** Takes a host's cable out, or puts it back. */
    void plug(int host, boolean in) throws Exception {
        bridge.run("ip link set port" + host + (in ? " up" : " down"));
    }

    /** Every host's interface sends no faster, and no longer frames. */
    void slow(String rate, int mtu) throws Exception {
        for (TestHost host : hosts) {
            host.run("tc qdisc add dev eth0 root tbf rate " + rate + " burst 16kb latency 200ms; ip link set eth0 mtu "
                    + mtu);
        }
    }

    /**
     * Gives each host a second interface, {@code wan0}, whose packets are lost at random, and delayed.
     *
     * @return what says at the end of its standard input how many were lost
     */
    Process lossy(Path directory, int perMille, int delayMillis, int jitterMillis) throws Exception {
        Path program = directory.resolve("lossy_link");
        Process compiler = new ProcessBuilder("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program.toString(),
                Path.of("src", "test", "c", "namespace", "lossy_link.c").toString()).inheritIO().start();
        assertEquals(true, compiler.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) && compiler.exitValue() == 0);
        List<String> command =
                new ArrayList<>(List.of(program.toString(), "" + perMille, "" + delayMillis, "" + jitterMillis));
        hosts.forEach(host -> command.add("" + host.pid()));
        Process link = new ProcessBuilder(command).redirectErrorStream(true).start();
        assertEquals("ready", link.inputReader().readLine());
        return link;
    }

    @Override
    public void close() throws IOException {
        for (TestHost host : hosts) {
            host.close();
        }
        bridge.close();
    }
}
