package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.ConnectionException;

class RailAddressesTest {

    /** Local addresses with prefix lengths, remote addresses, and the resulting pairs. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"10.0.0.1/24 10.0.1.1/24|10.0.0.2 10.0.1.2|10.0.0.1-10.0.0.2 10.0.1.1-10.0.1.2",
                    "10.0.0.1/24 10.0.1.1/24|10.0.1.2 10.0.0.2|10.0.1.1-10.0.1.2 10.0.0.1-10.0.0.2",
                    "10.0.0.1/16 10.0.1.1/16|10.0.1.2 10.0.0.2|10.0.0.1-10.0.1.2 10.0.1.1-10.0.0.2",
                    "10.0.0.1/24 10.0.1.1/24|10.9.0.2 10.9.1.2|10.0.0.1-10.9.0.2 10.0.1.1-10.9.1.2",
                    "10.0.0.1/24 10.0.0.3/24 10.0.0.5/24|10.0.0.2 10.0.0.4|10.0.0.1-10.0.0.2 10.0.0.3-10.0.0.4 10.0.0.5-10.0.0.2",
                    "10.0.0.1/24|10.0.0.2 10.0.1.2|10.0.0.1-10.0.0.2 10.0.0.1-10.0.1.2",
                    "''|10.0.0.2 10.0.1.2|null-10.0.0.2 null-10.0.1.2",
                    "10.0.0.1/24 fd00::1/64|fd00::2 10.0.0.2|fd00:0:0:0:0:0:0:1-fd00:0:0:0:0:0:0:2 10.0.0.1-10.0.0.2",
                    "10.0.0.1/24|fd00::2|null-fd00:0:0:0:0:0:0:2"})
    void addressesArePaired(String locals, String remotes, String pairs) {
        List<LocalAddress> ours = Arrays.stream(locals.split(" "))
                .filter(text -> !text.isEmpty())
                .map(text -> text.split("/"))
                .map(parts -> new LocalAddress("eth0", InetAddress.ofLiteral(parts[0]), Integer.parseInt(parts[1])))
                .toList();
        List<InetSocketAddress> theirs = Arrays.stream(remotes.split(" "))
                .map(text -> new InetSocketAddress(InetAddress.ofLiteral(text), 1))
                .toList();
        assertEquals(pairs,
                SocketConnect.RailAddresses.pair(ours, theirs)
                        .stream()
                        .map(pair -> (pair.local() == null ? null : pair.local().getHostAddress()) + "-"
                                + pair.remote().getAddress().getHostAddress())
                        .collect(Collectors.joining(" ")));
    }

    @Test
    void aListIsReadAsItWasWritten() {
        List<InetSocketAddress> addresses = List.of(new InetSocketAddress(InetAddress.ofLiteral("10.0.0.2"), 65_535),
                new InetSocketAddress(InetAddress.ofLiteral("fd00::2"), 1));
        assertEquals(addresses, AddressFormat.decodeList(AddressFormat.encodeList(addresses)));
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "0, 9", "0, -1", "10, 5"})
    void aDamagedListIsRefused(int at, int value) {
        ByteBuffer bytes =
                AddressFormat.encodeList(List.of(new InetSocketAddress(InetAddress.ofLiteral("10.0.0.2"), 1)))
                        .order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(at, value);
        assertTrue(assertThrows(ConnectionException.class, () -> AddressFormat.decodeList(bytes)).getMessage()
                .contains("is damaged"));
    }
}
