package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.AddressFormat;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** Streams under TLS: the peers that are accepted, the data that an observer sees, and the effect of changed bytes. */
@Tag("optimized") // only the optimizing compiler uses the processor's instructions for AES-GCM
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class TlsTest {

    private static final String PLAIN = "this is what nobody between may read";
    private static final int PAYLOAD = 40_000;

    @TempDir
    Path directory;

    private static SocketOptions options(String... settings) {
        return SocketOptions.defaults()
                .withAddresses("lo", null, null)
                .withDeadlines(Duration.ofSeconds(10), Duration.ofSeconds(10))
                .withTls(identity(settings));
    }

    private static TlsIdentity identity(String... pairs) {
        Map<String, String> settings = new java.util.HashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            settings.put(pairs[i], pairs[i + 1]);
        }
        return TlsIdentity.of(Configuration.load(settings));
    }

    private static SocketOptions secret(String secret) {
        return options("MILLRACE_TLS", "1", "MILLRACE_SECRET", secret);
    }

    private static void connect(SocketOptions here, SocketOptions there, Use use) throws Exception {
        try (SocketNetwork one = new SocketNetwork(here);
                SocketNetwork other = new SocketNetwork(there);
                Listener listener = other.listen();
                Relay relay = new Relay(AddressFormat.SOCKET.decode(listener.address()))) {
            byte[] through = AddressFormat.SOCKET.encode(relay.address(), AddressFormat.secret(listener.address()), 1);
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> expected = listener.expect(key);
            Pending<FrameSender> begun = one.connect(through, key);
            Connected made = Connected.await(listener, begun, expected);
            use.of(one, other, made.sender(), made.receiver(), relay);
        }
    }

    private interface Use {
        void of(SocketNetwork one, SocketNetwork other, FrameSender sender, FrameReceiver receiver, Relay relay)
                throws Exception;
    }

    private static void send(SocketNetwork one, SocketNetwork other, FrameSender sender, FrameReceiver receiver,
            Arena arena) {
        MemorySegment from = arena.allocate(PAYLOAD);
        byte[] text = PLAIN.getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at + text.length <= PAYLOAD; at += text.length) {
            MemorySegment.copy(MemorySegment.ofArray(text), 0, from, at, text.length);
        }
        MemorySegment to = arena.allocate(PAYLOAD);
        FrameHeader header = new FrameHeader();
        header.payloadBytes(PAYLOAD);
        MemoryRegion source = one.register(from);
        MemoryRegion target = other.register(to);
        long before = receiver.framesCompleted();
        assertTrue(sender.offer(header, source, 0));
        while (receiver.poll() == null) {
            sender.progress();
        }
        receiver.accept(target, 0);
        while (receiver.framesCompleted() == before) {
            sender.progress();
            receiver.progress();
        }
        while (sender.framesCompleted() == before) {
            sender.progress();
        }
        assertEquals(-1, from.mismatch(to));
        source.close();
        target.close();
    }

    /**
     * The connection breaks before or during the handshake, for example because a listener has too many clients and
     * drops one. The client connects again.
     */
    @Test
    void aListenerThatBreaksTheHandshakeIsAskedAgain() throws Exception {
        try (SocketNetwork one = new SocketNetwork(secret("of the group"));
                Listener listener = one.listen();
                Relay relay = new Relay(AddressFormat.SOCKET.decode(listener.address()))) {
            AtomicInteger said = new AtomicInteger();
            relay.change(bytes -> {
                if (said.incrementAndGet() == 2) { // the second message belongs to the handshake
                    relay.breakNext(1);
                    throw new UncheckedIOException(new IOException("the connection is broken"));
                }
                return bytes;
            });
            byte[] through = AddressFormat.SOCKET.encode(relay.address(), AddressFormat.secret(listener.address()), 1);
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> expected = listener.expect(key);
            Pending<FrameSender> begun = one.connect(through, key);
            Connected made = Connected.await(listener, begun, expected);
            assertTrue(said.get() > 2);
            assertEquals(0, relay.leftToBreak());
            try (Arena arena = Arena.ofShared()) {
                send(one, one, made.sender(), made.receiver(), arena);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 100, 1_000})
    void segmentsOfAnyLengthCarryData(int bytes) throws Exception {
        try (SocketNetwork one = new SocketNetwork(secret("of the group"));
                Listener listener = one.listen();
                Relay relay = new Relay(AddressFormat.SOCKET.decode(listener.address()))) {
            relay.split(bytes);
            byte[] through = AddressFormat.SOCKET.encode(relay.address(), AddressFormat.secret(listener.address()), 1);
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> expected = listener.expect(key);
            Connected made = Connected.await(listener, one.connect(through, key), expected);
            try (Arena arena = Arena.ofShared()) {
                send(one, one, made.sender(), made.receiver(), arena);
            }
        }
    }

    private static boolean sees(Relay relay, String text) {
        return new String(relay.seen(), StandardCharsets.ISO_8859_1).contains(text);
    }

    @Test
    void whoIsBetweenReadsNothing() throws Exception {
        connect(secret("of the group"), secret("of the group"), (one, other, sender, receiver, relay) -> {
            try (Arena arena = Arena.ofShared()) {
                for (int frame = 0; frame < 3; frame++) {
                    send(one, other, sender, receiver, arena);
                }
            }
            assertTrue(relay.seen().length > 3 * PAYLOAD);
            assertFalse(sees(relay, PLAIN), "the data went by in clear");
            assertFalse(sees(relay, "MILLRACE"), "the hello went by in clear, with the listener's secret");
        });
        connect(options(), options(), (one, other, sender, receiver, relay) -> {
            try (Arena arena = Arena.ofShared()) {
                send(one, other, sender, receiver, arena);
            }
            assertTrue(sees(relay, PLAIN) && sees(relay, "MILLRACE"), "the test would find it");
        });
    }

    @Test
    void aByteThatIsChangedIsNamedByBoth() throws Exception {
        connect(secret("of the group"), secret("of the group"), (one, other, sender, receiver, relay) -> {
            try (Arena arena = Arena.ofShared()) {
                send(one, other, sender, receiver, arena);
                AtomicBoolean done = new AtomicBoolean();
                relay.change(said -> {
                    if (done.compareAndSet(false, true)) {
                        said[said.length / 2] ^= 1;
                    }
                    return said;
                });
                FrameHeader header = new FrameHeader();
                header.payloadBytes(0);
                assertTrue(sender.offer(header, null, 0));
                sender.progress();
                ConnectionException received = Connected.failureOf(receiver::poll);
                assertTrue(done.get(), "nothing was changed");
                assertTrue(
                        received.getMessage().contains("TLS")
                                && received.getMessage().contains("something between the two ends changes data"),
                        received.getMessage());
                assertTrue(wentThrough(RecordCipher.class, received), "the JDK's own cipher, which is slower");
                ConnectionException sent = Connected.failureOf(sender::progress);
                assertTrue(sent.getMessage().contains("TLS: ") && sent.getMessage().contains("bad_record_mac"),
                        sent.getMessage());
            }
        });
    }

    private static boolean wentThrough(Class<?> where, Throwable thrown) {
        return Stream.iterate(thrown, Objects::nonNull, Throwable::getCause)
                .flatMap(each -> Arrays.stream(each.getStackTrace()))
                .anyMatch(frame -> frame.getClassName().equals(where.getName()));
    }

    /** Returns the failure of a client that the listener drops. The client connects again until its deadline. */
    private static String failure(SocketOptions here, SocketOptions there) {
        SocketOptions client = here.withDeadlines(Duration.ofSeconds(2), here.handshakeDeadline());
        return assertThrows(ConnectionException.class,
                () -> connect(client, there, (one, other, sender, receiver, relay) -> {})).getMessage();
    }

    @Test
    @Tag("slow")
    void whoHasAnotherSecretIsNotLetIn() {
        String said = failure(secret("of the group"), secret("of another"));
        assertTrue(said.contains("TLS") && said.contains("the secret"), said);
        said = failure(secret("of the group"), options());
        assertTrue(said.contains("MILLRACE_TLS") && said.contains("the same on all ranks"), said);
        assertNotNull(failure(options(), secret("of the group")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"ed25519", "ec", "rsa"})
    void certificatesOfOneAuthorityAreRanks(String kind) throws Exception {
        Pem ours = Pem.make(directory.resolve("a"), kind);
        Pem others = Pem.make(directory.resolve("b"), kind);
        connect(options(ours.settings()), options(ours.settings()), (one, other, sender, receiver, relay) -> {
            try (Arena arena = Arena.ofShared()) {
                send(one, other, sender, receiver, arena);
            }
        });
        String said = failure(options(ours.settings()), options(others.settings()));
        assertTrue(said.contains("TLS"), said);
    }

    @Test
    void aClientWithoutACertificateIsRefused() throws Exception {
        assertTrue(TlsIdentity.ofSecret("of the group").engine(false).getNeedClientAuth());
        assertTrue(identity(Pem.make(directory.resolve("a"), "ec").settings()).engine(false).getNeedClientAuth());
    }

    /** All hosts derive the same certificate from the same secret. */
    @Test
    void aSecretHasOneCertificate() throws Exception {
        SecretCertificate one = SecretCertificate.of("of the group");
        assertEquals(one.certificate(), SecretCertificate.of("of the group").certificate());
        one.certificate().verify(one.certificate().getPublicKey());
        assertFalse(one.certificate().equals(SecretCertificate.of("of the grouP").certificate()));
    }

    @Test
    void settingsThatDoNotGoTogetherAreRefused() throws IOException {
        Path file = Files.writeString(directory.resolve("key.pem"), "-----BEGIN EC PRIVATE KEY-----\nAAAA\n");
        assertRefused("needs MILLRACE_SECRET", "MILLRACE_TLS", "1");
        assertRefused("go together", "MILLRACE_TLS", "1", "MILLRACE_TLS_KEY", file.toString());
        assertRefused("with MILLRACE_TLS=1", "MILLRACE_TLS_KEY", file.toString(), "MILLRACE_TLS_CERTIFICATE",
                file.toString(), "MILLRACE_TLS_CA", file.toString());
        assertRefused("cannot be used", "MILLRACE_TLS", "1", "MILLRACE_TLS_KEY", file.toString(),
                "MILLRACE_TLS_CERTIFICATE", file.toString(), "MILLRACE_TLS_CA", file.toString());
        for (String network : new String[] {"ucx", "plugin:/nowhere/libnccl-net.so"}) {
            String said = assertThrows(ConfigurationException.class, () -> NetworkOptions
                    .of(Configuration.load(
                            Map.of("MILLRACE_NET", network, "MILLRACE_TLS", "1", "MILLRACE_SECRET", "of the group")))
                    .open()).getMessage();
            assertTrue(said.contains("MILLRACE_TLS=1 is not possible with MILLRACE_NET=" + network), said);
        }
    }

    /** The automatic choice uses encrypted TCP, and never RDMA, which is not encrypted. */
    @Test
    void theNetworkThatChoosesWorksUnderTls() {
        ShmOptions notShared = TestOptions.shm(directory.resolve("none"));
        try (Network network = NetworkOptions.NetworkChoice.AUTO.open(secret("of the group"), notShared);
                Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().toString().startsWith("socket connection"), ends.sender().toString());
        }
    }

    private static void assertRefused(String why, String... settings) {
        String said = assertThrows(ConfigurationException.class, () -> identity(settings)).getMessage();
        assertTrue(said.contains(why), said);
    }
}
