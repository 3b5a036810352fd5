package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.fuzz.Fuzz;
import org.millrace.transport.PeerInfo;

/** The control plane receives its usual inputs, but with mutated bytes. */
@Tag("slow")
class ControlFuzzTest {

    private static final int SIZE = 4;
    private static final Duration LONG = Duration.ofHours(24);

    @TempDir
    Path directory;

    private static byte[] bytes(Message... messages) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Message message : messages) {
            all.writeBytes(MessageCodec.encode(message).array());
        }
        return all.toByteArray();
    }

    @Test
    void letters() throws Exception {
        List<byte[]> recorded = List.of(bytes(new Present(new RankIdentity(1, 6, "host")), new Departed(2)),
                bytes(new Contribution(1, 0, Call.BARRIER, new byte[0])),
                bytes(new Contribution(2, 0, Call.ALL_GATHER, new byte[40]),
                        new Contribution(3, 0, Call.ALL_GATHER, new byte[9])),
                bytes(new Failed(new RemoteFailure(2, RemoteFailure.Kind.LOST, 1, "x", "line\n\tline"))),
                bytes(new PeerMessage(1, 0, 7, new byte[] {1, 2})),
                bytes(new Hello(new RankIdentity(3, 5, "node"), SIZE, new byte[16])),
                bytes(new Challenge(new RankIdentity(0, 7, "h"), new byte[16], new byte[32])),
                bytes(new Proof(new byte[32])), bytes(new Rejected("no")));
        Fuzz.run("control letters", 60_000, recorded, input -> {
            GroupState group = new GroupState(new RankIdentity(0, 1, "here"), SIZE);
            ByteBuffer in = ByteBuffer.wrap(input);
            try {
                while (in.remaining() >= MessageCodec.HEADER_BYTES) {
                    ByteBuffer header = ByteBuffer.wrap(input, in.position(), MessageCodec.HEADER_BYTES).slice();
                    ByteBuffer copied = ByteBuffer.allocate(MessageCodec.HEADER_BYTES).put(header).flip();
                    in.position(in.position() + MessageCodec.HEADER_BYTES);
                    int length = MessageCodec.bodyLength(copied, MessageCodec.MAX_BODY);
                    assertTrue(length <= MessageCodec.MAX_BODY, "a rank would wait for " + length + " bytes");
                    if (length > in.remaining()) {
                        return; // the rest of the message has not arrived
                    }
                    Message message = MessageCodec.decode(copied, in.slice(in.position(), length));
                    in.position(in.position() + length);
                    take(group, message);
                }
            } catch (ProtocolException refused) {
                assertFalse(refused.getMessage().isEmpty());
            }
        });
    }

    private static void take(GroupState group, Message message) throws ProtocolException {
        switch (message) {
            case Present arrival -> group.present(arrival.identity());
            case Contribution part -> group.contributed(part);
            case PeerMessage direct -> group.arrived(direct);
            case Failed failed -> group.failed(failed.failure());
            case Departed departed -> group.departed(departed.rank());
            default -> throw new ProtocolException("not for a member");
        }
    }

    /** Clients without the secret send data similar to a rank's messages. Afterwards a real rank connects. */
    @Test
    void strangersAtThePort() throws Exception {
        String rendezvous = "tcp:127.0.0.1:" + Ranks.freePort();
        JoinOptions options = Ranks.options(LONG, "known to the ranks alone");
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(rendezvous, 0, 2, options));
        RawRank.connect(rendezvous).close(); // a successful connection shows that rank 0 listens
        try {
            disturb(zero, Rendezvous.parse(rendezvous, options).find(0).address());
            try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, options);
                    ControlPlane first = Ranks.get(zero)) {
                FutureTask<Void> barrier = Ranks.async(() -> {
                    first.barrier();
                    return null;
                });
                one.barrier();
                Ranks.get(barrier);
            }
        } finally {
            zero.cancel(true);
        }
    }

    private static void disturb(FutureTask<ControlPlane> zero, InetSocketAddress address) throws Exception {
        Hello hello = new Hello(new RankIdentity(1, 4242, "raw-host"), 2, new byte[16]);
        List<byte[]> recorded = List.of(bytes(hello, new Proof(new byte[32])), bytes(hello),
                bytes(hello,
                        new Proof(Secret.of("", "a guess")
                                .proof(Secret.Side.MEMBER, hello, new RankIdentity(0, 1, "h"), new byte[16])),
                        new Contribution(1, 0, Call.BARRIER, new byte[0]), new Departed(1)),
                bytes(new Failed(new RemoteFailure(1, "a lie")), new Departed(1)));
        long inputs = Fuzz.run("strangers at the control port", 1_000, recorded, input -> {
            try (Socket socket = new Socket()) {
                socket.connect(address);
                socket.setSoTimeout(60_000);
                // the close resets the connection, so that the port does not stay occupied for a minute
                socket.setSoLinger(true, 0);
                try {
                    socket.getOutputStream().write(input);
                    socket.shutdownOutput();
                    byte[] answer = socket.getInputStream().readAllBytes();
                    assertFalse(says(answer, Present.class), "a stranger was let in");
                } catch (SocketException reset) {
                    assertTrue(reset.getMessage().matches("(?i).*(reset|broken pipe|not connected|closed).*"),
                            reset.getMessage());
                }
            }
            assertFalse(zero.isDone(), "rank 0 gave up");
        });
        assertTrue(inputs > 0);
    }

    private static boolean says(byte[] answer, Class<? extends Message> type) throws ProtocolException {
        ByteBuffer in = ByteBuffer.wrap(answer);
        boolean any = false;
        while (in.remaining() >= MessageCodec.HEADER_BYTES) {
            byte[] header = new byte[MessageCodec.HEADER_BYTES];
            in.get(header);
            int length = MessageCodec.bodyLength(ByteBuffer.wrap(header), MessageCodec.MAX_BODY);
            Message message = MessageCodec.decode(ByteBuffer.wrap(header), in.slice(in.position(), length));
            any |= type.isInstance(message);
            in.position(in.position() + length);
        }
        return any;
    }

    @Test
    void rendezvousFiles() throws Exception {
        Path path = directory.resolve("group");
        new FileRendezvous.RendezvousFile(new InetSocketAddress("127.0.0.1", 4711), Secret.randomHex(), 4,
                new RankIdentity(0, 12, "node")).publish(path);
        List<byte[]> recorded = List.of(Files.readAllBytes(path),
                "millrace-rendezvous=1\naddress=::1\nport=65536\nsecret=\\u00zz\nsize=-1\npid=x\nhost=".getBytes());
        Fuzz.run("rendezvous files", 8_000, recorded, input -> {
            Files.write(path, input);
            try {
                FileRendezvous.RendezvousFile.read(path)
                        .ifPresent(file -> assertTrue(file.size() >= 1 && file.address().getPort() > 0));
            } catch (IOException | MillraceException refused) {
                assertTrue(String.valueOf(refused.getMessage()).contains("group"), () -> "" + refused);
            }
        });
    }

    /** Messages in which accepted ranks describe themselves. */
    @Test
    void lettersOfMembers() throws Exception {
        List<byte[]> recorded = new ArrayList<>();
        PeerInfo.exchange(1, "node", List.of(), mine -> {
            recorded.add(mine);
            return new byte[0][];
        });
        assertEquals(1, recorded.size());
        byte[] zero = recorded.getFirst().clone();
        ByteBuffer.wrap(zero).putInt(0);
        Fuzz.run("letters of members", 60_000, recorded, input -> {
            try {
                PeerInfo.exchange(0, "node", List.of(), mine -> new byte[][] {zero, input});
            } catch (MillraceException refused) {
                assertTrue(refused.getMessage().contains("rank 1"), refused.getMessage());
            }
            RankLetter letter = new RankLetter(1, "a test", input);
            try {
                letter.number("a number", 0, 100);
                letter.sized("an address");
                letter.text("a text");
                letter.end();
            } catch (MillraceException refused) {
                assertTrue(refused.getMessage().contains("rank 1"), refused.getMessage());
            }
        });
    }
}
