package org.millrace.net.socket.handshake;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.StandardProtocolFamily;
import java.net.UnknownHostException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.ConnectionException;
import org.millrace.net.socket.handshake.Interfaces.Candidate;

class InterfacesTest {

    private static final List<Candidate> MACHINE = List.of(candidate("lo", "127.0.0.1"),
            candidate("docker0", "172.17.0.1"), candidate("eth0", "10.0.0.1", "fd00::1"),
            candidate("eth01", "10.0.1.1"), candidate("virbr0", "192.168.122.1"));

    private static Candidate candidate(String name, String... addresses) {
        return new Candidate(name, java.util.Arrays.stream(addresses).map(InterfacesTest::address).toList());
    }

    private static InetAddress address(String text) {
        try {
            return InetAddress.getByName(text);
        } catch (UnknownHostException e) {
            throw new AssertionError(e);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"eth|10.0.0.1", "eth01|10.0.1.1", "=eth01|10.0.1.1", "^lo,docker,eth0|192.168.122.1",
                    "^=lo,docker0,eth0|10.0.1.1", "nothing,docker|172.17.0.1", "lo:1234|127.0.0.1",
                    "=eth0,eth01|10.0.0.1", "''|10.0.0.1", "^|none"})
    void choosesAsNcclDoes(String choice, String expected) {
        if (expected.equals("none")) {
            assertThrows(ConnectionException.class, () -> Interfaces.choose(MACHINE, choice, null));
        } else {
            assertEquals(address(expected), Interfaces.choose(MACHINE, choice, null));
        }
    }

    @Test
    void withoutAChoiceInfinibandIsFirstAndLoopbackNearlyLast() {
        assertEquals(address("10.9.0.1"),
                Interfaces.choose(List.of(candidate("eth0", "10.0.0.1"), candidate("ib0", "10.9.0.1")), "", null));
        assertEquals(address("172.17.0.1"),
                Interfaces.choose(List.of(candidate("lo", "127.0.0.1"), candidate("docker0", "172.17.0.1")), "", null));
        assertEquals(address("127.0.0.1"),
                Interfaces.choose(List.of(candidate("virbr0", "10.0.0.1"), candidate("lo", "127.0.0.1")), "", null));
        assertEquals(address("10.0.0.1"), Interfaces.choose(List.of(candidate("virbr0", "10.0.0.1")), "", null));
    }

    @Test
    void aFamilyLeavesTheOthersOut() {
        assertEquals(address("fd00::1"), Interfaces.choose(MACHINE, "eth", StandardProtocolFamily.INET6));
        assertEquals(address("10.0.0.1"), Interfaces.choose(MACHINE, "eth", StandardProtocolFamily.INET));
    }

    @Test
    void whatExistsIsListedWhenNothingMatches() {
        String message = assertThrows(ConnectionException.class,
                () -> Interfaces.choose(MACHINE, "=eth", StandardProtocolFamily.INET6)).getMessage();
        assertTrue(message.contains("'=eth' with an address of INET6"), message);
        assertTrue(message.contains("docker0 [172.17.0.1], eth0 [10.0.0.1, fd00:0:0:0:0:0:0:1]"), message);
    }

    @Test
    void thisMachineHasAnInterface() {
        assertNotNull(Interfaces.choose("", null));
        assertEquals(address("127.0.0.1"), Interfaces.choose("lo", StandardProtocolFamily.INET));
    }
}
