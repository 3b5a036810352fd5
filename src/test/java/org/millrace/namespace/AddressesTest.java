package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.plugin.path.Announce;

/** Addresses that the plugin announces on hosts with many kinds of interfaces. */
@Timeout(120)
@Tag("root")
@Tag("slow")
class AddressesTest {

    private TestHost host;

    @BeforeEach
    void start() throws Exception {
        host = TestHost.named("node0");
        host.run("""
                for i in 0 1; do
                    ip link add eth$i type veth peer name peer$i
                    ip link set peer$i addrgenmode none
                    ip link set peer$i up
                    ip link set eth$i addrgenmode none
                    ip link set eth$i up
                done""");
    }

    @AfterEach
    void end() throws Exception {
        if (host != null) { // null if this machine allows no namespaces
            host.close();
        }
    }

    private String announced(String... settings) throws Exception {
        Process program = host.java(Announce.class, settings);
        return new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    private void assertAnnounced(String expected, String... settings) throws Exception {
        String said = announced(settings);
        assertTrue(said.contains("socket listener " + expected), said);
    }

    @Test
    void aSecondAddressOfAnInterfaceIsNotAnnounced() throws Exception {
        host.run("""
                ip addr add 10.0.0.1/24 dev eth0
                ip addr add 10.0.0.100/24 dev eth0
                ip addr add 10.0.0.101/32 dev eth0
                ip addr add 10.0.0.102/24 dev eth0 label eth0:vip""");
        assertAnnounced("10.0.0.1 port");
        assertAnnounced("10.0.0.1 port", "NCCL_SOCKET_IFNAME=eth0");
    }

    @Test
    void anInterfaceWithoutAUsableAddressIsLeftOut() throws Exception {
        // The address stays tentative for 255 s, a second for each probe. The kernel counts the probes in one byte.
        host.run("""
                echo 255 > /proc/sys/net/ipv6/conf/eth0/dad_transmits
                ip addr add fd00::1/64 dev eth0
                ip addr show dev eth0 | grep tentative
                ip addr add 10.0.1.1/24 dev eth1""");
        assertAnnounced("10.0.1.1 port");
        assertAnnounced("10.0.1.1 port", "NCCL_SOCKET_IFNAME=eth");
        String refused = announced("NCCL_SOCKET_IFNAME=eth0");
        assertTrue(refused.contains("fd00:0:0:0:0:0:0:1") && refused.contains("tentative"), refused);
    }

    /** Another host already uses the address. */
    @Test
    void aDuplicateAddressIsLeftOut() throws Exception {
        try (TestHost other = TestHost.named("node1")) {
            TestHost.connect(host, "eth2", other, "eth0");
            other.run("ip addr add fd00::1/64 dev eth0 nodad");
            host.run("""
                    ip addr add fd00::1/64 dev eth2
                    ip addr add fd01::1/64 dev eth1 nodad
                    until ip addr show dev eth2 | grep dadfailed; do sleep 0.1; done""");
            assertAnnounced("fd01:0:0:0:0:0:0:1 port");
        }
    }

    @Test
    void anAddressOfTheLinkIsTakenWhereThereIsNoOther() throws Exception {
        host.run("""
                ip addr add fe80::1/64 dev eth0 nodad
                ip addr add fd01::1/64 dev eth1 nodad""");
        assertAnnounced("fd01:0:0:0:0:0:0:1 port");
        assertAnnounced("fd01:0:0:0:0:0:0:1 port", "NCCL_SOCKET_IFNAME=^lo");
        assertAnnounced("fe80:0:0:0:0:0:0:1%", "NCCL_SOCKET_IFNAME=eth0");
        host.run("ip addr del fd01::1/64 dev eth1");
        assertAnnounced("fe80:0:0:0:0:0:0:1%");
    }

    @Test
    void aFamilyIsAsNcclReadsIt() throws Exception {
        host.run("""
                ip addr add 10.0.0.1/24 dev eth0
                ip addr add fd01::1/64 dev eth1 nodad""");
        assertAnnounced("10.0.0.1 port", "NCCL_SOCKET_FAMILY=AF_INET");
        assertAnnounced("fd01:0:0:0:0:0:0:1 port", "NCCL_SOCKET_FAMILY=AF_INET6");
    }

    @Test
    void withoutACarrierAnInterfaceIsNotRunning() throws Exception {
        host.run("""
                ip addr add 10.0.0.1/24 dev eth0
                ip link set peer0 down
                ip addr add 10.0.1.1/24 dev eth1""");
        assertAnnounced("10.0.1.1 port");
    }

    @Test
    void pointToPointBridgesAndLoopbackHaveTheirPlaces() throws Exception {
        assertAnnounced("127.0.0.1 port");
        host.run("""
                ip link add docker0 type veth peer name container
                ip link set container addrgenmode none up
                ip link set docker0 addrgenmode none up
                ip addr add 172.17.0.1/16 dev docker0""");
        assertAnnounced("172.17.0.1 port");
        host.run("ip addr add 10.8.0.6 peer 10.8.0.5 dev eth1");
        assertAnnounced("10.8.0.6 port");
    }

    @Test
    void withNoInterfaceItSaysWhatToDo() throws Exception {
        host.run("ip link set lo down");
        String said = announced();
        assertTrue(said.startsWith("refused: no network interface") && said.contains("ip link set lo up"), said);
    }
}
