package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Hosts on one network, or on several, {@code eth0} and {@code eth1} of each at a bridge that is a host of its own.
 * Frames are dropped without a word by giving the sender a hardware address of the receiver that nobody has.
 */
final class TestNetwork implements AutoCloseable {

    private static final String NOBODY = "02:00:00:00:00:99";
    private static final long PATIENCE_SECONDS = 30;

    private final TestHost bridge;
    private final int networks;
    final List<TestHost> hosts = new ArrayList<>();

    TestNetwork(int count) throws Exception {
        this(count, 1);
    }

    TestNetwork(int count, int networks) throws Exception {
        this.networks = networks;
        bridge = TestHost.named("bridge");
        boolean complete = false;
        try {
            for (int network = 0; network < networks; network++) {
                bridge.run("ip link add bridge" + network + " type bridge forward_delay 0; ip link set bridge" + network
                        + " up");
            }
            for (int i = 0; i < count; i++) {
                TestHost host = TestHost.named(name(i));
                hosts.add(host);
                for (int network = 0; network < networks; network++) {
                    String port = port(i, network);
                    TestHost.connect(bridge, port, host, "eth" + network);
                    bridge.run("ip link set " + port + " master bridge" + network);
                    host.run("ip address add " + address(i, network) + "/24 dev eth" + network);
                }
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
        return address(host, 0);
    }

    static String address(int host, int network) {
        return "10.77." + network + "." + (host + 1);
    }

    private static String port(int host, int network) {
        return "port" + host + "x" + network;
    }

    /** Frames from one host to another are dropped from now on, on all networks. */
    void silence(int from, int to) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from)
                    .run("ip neighbour replace " + address(to, network) + " lladdr " + NOBODY + " nud permanent dev eth"
                            + network);
        }
    }

    /** They arrive again. */
    void hear(int from, int to) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from).run("ip neighbour delete " + address(to, network) + " dev eth" + network);
        }
    }

    /** One host has no way to another, or has it again. */
    void route(int from, int to, boolean there) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from).run("ip route " + (there ? "delete" : "add") + " unreachable " + address(to, network));
        }
    }

    /** A host's kernel resets all that it has with another; how many connections these were. */
    long reset(int host, int peer) throws Exception {
        long count = 0;
        for (int network = 0; network < networks; network++) {
            count += hosts.get(host).run("ss -KHtn dst " + address(peer, network)).lines().count();
        }
        return count;
    }

    /** Takes a host's cables out, or puts them back. */
    void plug(int host, boolean in) throws Exception {
        for (int network = 0; network < networks; network++) {
            plug(host, network, in);
        }
    }

    /** The same with one cable. */
    void plug(int host, int network, boolean in) throws Exception {
        bridge.run("ip link set " + port(host, network) + (in ? " up" : " down"));
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
