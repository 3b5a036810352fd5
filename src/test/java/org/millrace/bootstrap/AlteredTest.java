package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.net.connection.Relay;
import org.millrace.net.socket.SocketOptions;

/**
 * Two ranks share a secret. An attacker between them can suppress messages, but cannot change messages unnoticed. Under
 * TLS the attacker cannot read the messages either.
 */
@Timeout(60)
class AlteredTest {

    private static final byte[] WORDS = "what rank 1 says of itself".getBytes(StandardCharsets.US_ASCII);

    private static JoinOptions options(boolean tls) {
        return JoinOptions.of(Configuration.load(Map.of("MILLRACE_SECRET", "of the ranks", "MILLRACE_TLS",
                tls ? "1" : "0", "MILLRACE_CONNECT_DEADLINE", "20s")), CommunicatorListener.STANDARD_ERROR);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aChangedMessageIsNoticed(boolean tls) throws Exception {
        int port = Ranks.freePort();
        FutureTask<ControlPlane> zero =
                Ranks.async(() -> ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, options(tls)));
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                ControlPlane one = ControlPlane.join("tcp:127.0.0.1:" + relay.address().getPort(), 1, 2, options(tls));
                ControlPlane first = Ranks.get(zero)) {
            FutureTask<byte[][]> gathered = Ranks.async(() -> first.allGather(new byte[0]));
            one.allGather(WORDS);
            assertArrayEquals(WORDS, Ranks.get(gathered)[1]);
            boolean read = new String(relay.seen(), StandardCharsets.ISO_8859_1)
                    .contains(new String(WORDS, StandardCharsets.US_ASCII));
            assertTrue(read != tls, tls ? "it was read under TLS" : "the test would find it");
            AtomicBoolean changed = new AtomicBoolean();
            relay.change(said -> {
                said[said.length - 20] ^= 1; // this byte belongs to the message or to its authentication code
                changed.set(true);
                return said;
            });
            FutureTask<byte[][]> second = Ranks.async(() -> first.allGather(new byte[0]));
            one.send(0, 1, WORDS);
            String said = Ranks.failureOf(second);
            assertTrue(changed.get() && said.contains(tls ? "TLS" : "authentication code is wrong")
                    && said.contains("rank 1"), said);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 100, 1_000})
    void segmentsOfAnyLengthJoinUnderTls(int bytes) throws Exception {
        int port = Ranks.freePort();
        FutureTask<ControlPlane> zero =
                Ranks.async(() -> ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, options(true)));
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))) {
            relay.split(bytes);
            try (ControlPlane one =
                    ControlPlane.join("tcp:127.0.0.1:" + relay.address().getPort(), 1, 2, options(true));
                    ControlPlane first = Ranks.get(zero)) {
                FutureTask<byte[][]> gathered = Ranks.async(() -> first.allGather(new byte[5_000]));
                assertEquals(5_000, one.allGather(WORDS)[0].length);
                assertArrayEquals(WORDS, Ranks.get(gathered)[1]);
            }
        }
    }

    @Test
    void aGroupThatOthersReachNeedsASecretWhereThatIsWanted() {
        JoinOptions required = new JoinOptions(Ranks.TIMEOUT, null, true, null, "", SocketOptions.defaults(),
                CommunicatorListener.STANDARD_ERROR, null);
        for (String host : List.of("0.0.0.0", "127.0.0.1")) { // other users can connect to both addresses
            for (int rank = 0; rank < 2; rank++) {
                int each = rank;
                String said = assertThrows(MillraceException.class,
                        () -> ControlPlane.join("tcp:" + host + ":4711", each, 2, required)).getMessage();
                assertTrue(said.contains("MILLRACE_REQUIRE_SECRET=1") && said.contains("MILLRACE_SECRET"), said);
            }
        }
        assertFalse(required.toString().contains("set"), required.toString());
    }

    /**
     * Millrace itself prints the warning on standard error, because Log4j without a configuration shows only errors.
     */
    @Test
    void aGroupThatAnybodyCanJoinIsToldOnStandardErrorOnce() throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream before = System.err;
        String rendezvous = "tcp:0.0.0.0:" + Ranks.freePort();
        System.setErr(new PrintStream(said, true));
        try {
            for (int group = 0; group < 2; group++) {
                Ranks.closeAll(Ranks.join(rendezvous, 2));
            }
        } finally {
            System.setErr(before);
        }
        assertEquals(2, said.toString().split("millrace: the group at " + rendezvous + " has no secret", -1).length,
                said.toString());
    }
}
