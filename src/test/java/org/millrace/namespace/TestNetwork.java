package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Hosts on one or several networks. Each network is a bridge in a separate host. Each host has an interface at each
 * bridge: {@code eth0}, {@code eth1}. To drop frames silently, the test gives the sender an unused hardware address for
 * the receiver.
 */
final class TestNetwork implements AutoCloseable {

    private static final String UNUSED_MAC = "02:00:00:00:00:99";
    private static final long TIMEOUT_SECONDS = 30;

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

    /** Drops frames from one host to another from now on, on all networks. */
    void silence(int from, int to) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from)
                    .run("ip neighbour replace " + address(to, network) + " lladdr " + UNUSED_MAC
                            + " nud permanent dev eth" + network);
        }
    }

    /** Delivers frames again. */
    void hear(int from, int to) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from).run("ip neighbour delete " + address(to, network) + " dev eth" + network);
        }
    }

    /** Removes or restores one host's route to another. */
    void route(int from, int to, boolean there) throws Exception {
        for (int network = 0; network < networks; network++) {
            hosts.get(from).run("ip route " + (there ? "delete" : "add") + " unreachable " + address(to, network));
        }
    }

    /** Makes Linux reset all connections of a host to another host. Returns their number. */
    long reset(int host, int peer) throws Exception {
        long count = 0;
        for (int network = 0; network < networks; network++) {
            count += hosts.get(host).run("ss -KHtn dst " + address(peer, network)).lines().count();
        }
        return count;
    }

    /** Unplugs or plugs all cables of a host. */
    void plug(int host, boolean in) throws Exception {
        for (int network = 0; network < networks; network++) {
            plug(host, network, in);
        }
    }

    /** Unplugs or plugs one cable of a host. */
    void plug(int host, int network, boolean in) throws Exception {
        bridge.run("ip link set " + port(host, network) + (in ? " up" : " down"));
    }

    /** Limits the rate and the frame size of every host's interface. */
    void slow(String rate, int mtu) throws Exception {
        for (TestHost host : hosts) {
            host.run("tc qdisc add dev eth0 root tbf rate " + rate + " burst 16kb latency 200ms; ip link set eth0 mtu "
                    + mtu);
        }
    }

    /**
     * Gives each host a second interface, {@code wan0}, which delays packets and randomly loses packets.
     *
     * @return process that prints the number of lost packets when its standard input is closed
     */
    Process lossy(Path directory, int perMille, int delayMillis, int jitterMillis) throws Exception {
        Path program = directory.resolve("lossy_link");
        Process compiler = new ProcessBuilder("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program.toString(),
                Path.of("src", "test", "c", "namespace", "lossy_link.c").toString()).inheritIO().start();
        assertEquals(true, compiler.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS) && compiler.exitValue() == 0);
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
