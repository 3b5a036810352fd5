package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.ConnectionException;

class InterfacesTest {

    private static final String MACHINE = "lo 127.0.0.1 docker0 172.17.0.1 eth0 10.0.0.1 eth01 10.0.1.1"
            + " virbr0 192.168.122.1 lo ::1 eth0 fd00::1 eth0 fe80::1";

    /** Returns the interfaces that NCCL would see, each with its first address that meets the requirements. */
    private static List<String> all(String machine, Predicate<InetAddress> canListen, String choice,
            ProtocolFamily family) {
        String[] words = machine.split(" ");
        List<LocalAddress> addresses = new ArrayList<>();
        for (int i = 0; i < words.length; i += 2) {
            addresses.add(new LocalAddress(words[i], address(words[i + 1]), 24));
        }
        return Interfaces.choose(addresses, canListen, choice, family)
                .addresses()
                .stream()
                .map(InetAddress::getHostAddress)
                .toList();
    }

    private static String first(String machine, String choice, ProtocolFamily family) {
        return all(machine, address -> true, choice, family).getFirst();
    }

    private static InetAddress address(String text) {
        return InetAddress.ofLiteral(text);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"eth|10.0.0.1", "eth01|10.0.1.1", "=eth01|10.0.1.1", "^lo,docker,eth0|192.168.122.1",
                    "^=lo,docker0,eth0|10.0.1.1", "nothing,docker|172.17.0.1", "lo:1234|127.0.0.1",
                    "=eth0,eth01|10.0.0.1", "''|10.0.0.1", "^|none"})
    void choosesAsNcclDoes(String choice, String expected) {
        if (expected.equals("none")) {
            assertThrows(ConnectionException.class, () -> first(MACHINE, choice, null));
        } else {
            assertEquals(expected, first(MACHINE, choice, null));
        }
    }

    @Test
    void withoutAChoiceInfinibandIsFirstAndLoopbackNearlyLast() {
        assertEquals("10.9.0.1", first("eth0 10.0.0.1 ib0 10.9.0.1", "", null));
        assertEquals("172.17.0.1", first("lo 127.0.0.1 docker0 172.17.0.1", "", null));
        assertEquals("127.0.0.1", first("virbr0 10.0.0.1 lo 127.0.0.1", "", null));
        assertEquals("10.0.0.1", first("virbr0 10.0.0.1", "", null));
    }

    @Test
    void theFirstAddressOfAnInterfaceThatCanBeListenedOnIsTaken() {
        assertEquals("10.0.0.1", first("eth0 10.0.0.1 eth0 10.0.0.9", "", null));
        String machine = "eth0 fd00::1 eth0 fd00::2 eth1 fd01::1";
        assertEquals(List.of("fd00:0:0:0:0:0:0:2", "fd01:0:0:0:0:0:0:1"),
                all(machine, address -> !address.equals(address("fd00::1")), "eth", null));
        assertEquals(List.of("fd01:0:0:0:0:0:0:1"),
                all(machine, address -> address.equals(address("fd01::1")), "", null));
        String refused = assertThrows(ConnectionException.class, () -> all(machine, address -> false, "eth0", null))
                .getMessage();
        assertTrue(refused.contains("fd00:0:0:0:0:0:0:1 of eth0, fd00:0:0:0:0:0:0:2 of eth0, which cannot"), refused);
    }

    @Test
    void addressesOfTheLinkComeLast() {
        assertEquals("10.0.0.1", first("eth0 169.254.0.1 eth1 10.0.0.1", "", null));
        assertEquals("fd00:0:0:0:0:0:0:1", first("eth0 fe80::1 eth0 fd00::1", "", null));
        assertEquals("fd01:0:0:0:0:0:0:1", first("eth0 fe80::1 eth1 fd01::1", "", null));
        assertEquals(List.of("10.0.0.1", "169.254.0.1"),
                all("eth0 169.254.0.1 eth1 10.0.0.1 eth2 fe80::1", address -> true, "eth", null));
        assertEquals(List.of("fe80:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:2"),
                all("eth0 fe80::1 eth1 fe80::2", address -> true, "eth", null));
    }

    @Test
    void aPeersAddressOfTheLinkIsOnOurs() throws Exception {
        InetAddress ours = Inet6Address.getByAddress(null, address("fe80::1").getAddress(), 7);
        InetSocketAddress theirs =
                new InetSocketAddress(Inet6Address.getByAddress(null, address("fe80::2").getAddress(), 3), 4711);
        assertEquals("fe80:0:0:0:0:0:0:2%7",
                Interfaces.reachable(theirs, () -> List.of(address("10.0.0.1"), ours)).getAddress().getHostAddress());
        assertEquals("fe80:0:0:0:0:0:0:2%3",
                Interfaces.reachable(theirs, () -> List.of(address("10.0.0.1"))).getAddress().getHostAddress());
        InetSocketAddress anywhere = new InetSocketAddress("10.0.0.2", 4711);
        assertSame(anywhere, Interfaces.reachable(anywhere, () -> {
            throw new AssertionError("nobody asks for ours");
        }));
    }

    @Test
    void aFamilyLeavesTheOthersOut() {
        assertEquals("fd00:0:0:0:0:0:0:1", first(MACHINE, "eth", StandardProtocolFamily.INET6));
        assertEquals("10.0.0.1", first(MACHINE, "eth", StandardProtocolFamily.INET));
    }

    @Test
    void whatExistsIsListedWhenNothingMatches() {
        String message =
                assertThrows(ConnectionException.class, () -> first(MACHINE, "=eth", StandardProtocolFamily.INET6))
                        .getMessage();
        assertTrue(message.contains("is as NCCL_SOCKET_IFNAME==eth with an address of INET6"), message);
        assertTrue(message.contains("172.17.0.1 of docker0, 10.0.0.1 of eth0"), message);
    }

    @Test
    void thisMachineHasAnInterface() {
        assertFalse(Interfaces.choose(SocketOptions.defaults()).addresses().isEmpty());
        assertEquals(List.of(address("127.0.0.1")),
                Interfaces.choose(SocketOptions.defaults().withAddresses("lo", StandardProtocolFamily.INET, null))
                        .addresses());
        LocalAddress loopback = new LocalAddress("lo", address("127.3.0.1"), 8);
        assertEquals(loopback, LocalAddress.of(loopback.address()));
        LocalAddress nobodys = new LocalAddress("198.51.100.1", address("198.51.100.1"), 32);
        assertEquals(nobodys, LocalAddress.of(nobodys.address()));
    }
}
