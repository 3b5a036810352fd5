package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NamedHostTest {

    private static final SocketOptions LOOPBACK = SocketOptions.defaults().withAddresses("lo", null, null);

    private static LocalAddress.NamedHost of(String name, String... found) {
        return LocalAddress.NamedHost.of(name, Stream.of(found).map(InetAddress::ofLiteral).toList(), LOOPBACK);
    }

    /** If a host's name or address means loopback, the address that the name resolves to is used unchanged. */
    @ParameterizedTest
    @CsvSource({"localhost, 127.0.0.1", "LOCALHOST.localdomain, 127.0.0.1", "ip6-loopback, ::1", "127.0.1.1, 127.0.1.1",
            "::1, ::1", "fe80::1%1, fe80::1"})
    void namesOfLoopbackAreTakenAsTheyAre(String name, String found) {
        InetAddress address = InetAddress.ofLiteral(found);
        assertEquals(new LocalAddress.NamedHost(List.of(address), address, ""), of(name, found));
    }

    @Test
    void anotherNameThatIsLoopbackIsListenedAtEverywhere() {
        LocalAddress.NamedHost own = of("node0", "127.0.1.1");
        assertTrue(own.listenAt().isAnyLocalAddress());
        assertEquals(List.of(InetAddress.ofLiteral("127.0.0.1")), own.addresses());
        assertEquals(InetAddress.ofLiteral("127.0.0.1"), own.announced());
        assertTrue(own.words().contains("node0 is 127.0.1.1 here"), own.words());
        assertTrue(of("notlocalhost", "127.0.0.1").listenAt().isAnyLocalAddress());
    }

    @Test
    void ofSeveralAddressesTheOneThatIsHereIsListenedAt() {
        assertEquals(InetAddress.ofLiteral("127.0.0.1"), of("node0", "198.51.100.1", "127.0.0.1").listenAt());
        assertEquals(InetAddress.ofLiteral("198.51.100.1"), of("node0", "198.51.100.1", "198.51.100.2").listenAt());
        assertEquals(InetAddress.ofLiteral("198.51.100.1"), of("node0", "198.51.100.1").listenAt());
        assertEquals(InetAddress.ofLiteral("127.0.0.1"), of("localhost", "127.0.0.1", "::1").listenAt());
        assertEquals(2, of("localhost", "127.0.0.1", "::1").addresses().size());
    }

    @Test
    void aNumberNeedsNoNameService() throws UnknownHostException {
        assertEquals(of("198.51.100.1", "198.51.100.1"), LocalAddress.NamedHost.of("198.51.100.1", LOOPBACK));
    }
}
