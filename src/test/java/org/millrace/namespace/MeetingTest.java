package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks of two hosts find each other, whatever the names and addresses of the hosts are. */
@Timeout(180)
@Tag("root")
@Tag("slow")
class MeetingTest {

    private TestHost zero;
    private TestHost one;
    private final List<Process> ranks = new ArrayList<>();

    @BeforeEach
    void start() throws Exception {
        zero = TestHost.named("node0");
        one = TestHost.named("node1");
        // This interface shifts the interface numbers of one host. The interface between the two hosts therefore has
        // different numbers on the two hosts.
        one.run("ip link add other type veth peer name another");
        TestHost.connect(zero, "eth0", one, "eth0");
    }

    @AfterEach
    void end() throws Exception {
        for (TestHost host : new TestHost[] {zero, one}) {
            if (host != null) { // null if this machine allows no namespaces
                host.close();
            }
        }
    }

    private void rank(TestHost host, String rendezvous, int size, String... settings) throws Exception {
        List<String> arguments =
                new ArrayList<>(List.of(rendezvous, "" + ranks.size(), "" + size, "MILLRACE_NET=socket"));
        arguments.addAll(List.of(settings));
        ranks.add(host.java(SummingRank.class, arguments.toArray(String[]::new)));
    }

    private void assertAllMet() throws Exception {
        for (Process rank : ranks) {
            assertEquals("all right over [NET socket]", said(rank));
        }
    }

    private static String said(Process rank) throws Exception {
        return new String(rank.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    private void addresses() throws Exception {
        zero.run("ip addr add 10.0.0.1/24 dev eth0");
        one.run("ip addr add 10.0.0.2/24 dev eth0");
    }

    /**
     * In a host's {@code /etc/hosts}, the host's own name is a loopback address. Debian and Ubuntu write this file in
     * this way.
     */
    @Test
    void aHostsOwnNameIsALoopbackAddressThere() throws Exception {
        addresses();
        zero.hosts("127.0.0.1 localhost\n127.0.1.1 node0\n10.0.0.2 node1\n");
        one.hosts("127.0.0.1 localhost\n127.0.1.1 node1\n10.0.0.1 node0\n");
        // the last two ranks also form a group: the group's first rank is on the host of rank 0, and its second rank is
        // on the other host
        rank(zero, "tcp:node0:4711", 3);
        rank(zero, "tcp:node0:4711", 3);
        rank(one, "tcp:node0:4711", 3);
        assertAllMet();
    }

    @Test
    void aNameThatIsLoopbackElsewhereIsExplained() throws Exception {
        addresses();
        one.hosts("127.0.1.1 node1 node0\n");
        ranks.add(one.java(SummingRank.class, "tcp:node0:4711", "1", "2", "MILLRACE_CONNECT_DEADLINE=1s"));
        String said = said(ranks.getFirst());
        assertTrue(
                said.contains("no process listens at 10.0.0.2:4711 (node0 is 127.0.1.1 here, where other hosts do not"
                        + " reach it: taken for 10.0.0.2 of eth0"),
                said);
    }

    @Test
    void ofSeveralAddressesOneLeadsThere() throws Exception {
        addresses();
        zero.hosts("10.0.0.1 node0\n");
        one.hosts("10.0.0.2 node0\n192.0.2.1 node0\n10.0.0.1 node0\n");
        rank(zero, "tcp:node0:4711", 2);
        rank(one, "tcp:node0:4711", 2);
        assertAllMet();
    }

    @Test
    void rankZeroListensAtAllAddressesOfItsName() throws Exception {
        addresses();
        zero.run("ip addr add fd00::1/64 dev eth0 nodad");
        one.run("ip addr add fd00::2/64 dev eth0 nodad");
        zero.hosts("10.0.0.1 node0\nfd00::1 node0\n");
        one.hosts("fd00::1 node0\n");
        rank(zero, "tcp:node0:4711", 2);
        rank(one, "tcp:node0:4711", 2);
        assertAllMet();
    }

    @Test
    void hostsWithoutIpv4MeetByTorchrunsVariables() throws Exception {
        zero.run("ip addr add fd00::1/64 dev eth0 nodad");
        one.run("ip addr add fd00::2/64 dev eth0 nodad");
        for (TestHost host : List.of(zero, one)) {
            Map<String, String> torchrun = Map.of("RANK", "" + ranks.size(), "WORLD_SIZE", "2", "MASTER_ADDR",
                    "fd00::1", "MASTER_PORT", "4711", "MILLRACE_NET", "socket");
            ranks.add(host.java(torchrun, SummingRank.class));
        }
        assertAllMet();
    }

    @Test
    void hostsWithAddressesOfTheLinkAloneMeet() throws Exception {
        zero.run("ip addr add fe80::a/64 dev eth0 nodad");
        one.run("ip addr add fe80::b/64 dev eth0 nodad");
        rank(zero, "tcp:[fe80::a%eth0]:4711", 2);
        rank(one, "tcp:[fe80::a%eth0]:4711", 2);
        assertAllMet();
    }
}
