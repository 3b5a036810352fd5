package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.OtherVersion;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Rejected;

class MessageCodecTest {

    private static final List<Message> ALL = List.of(
            new Hello(new RankIdentity(3, 123_456_789_012L, "node-ü", "run ü", "kernel", 1L << 40), 4,
                    new byte[] {1, 2, 3}),
            new Challenge(new RankIdentity(0, 7, ""), new byte[16], new byte[32]), new Proof(new byte[32]),
            new Rejected("no"), new Present(new RankIdentity(5, 6, "host")),
            new Contribution(1, Long.MAX_VALUE, Call.BARRIER, new byte[0]),
            new Contribution(1, 2, Call.ALL_GATHER, new byte[MessageCodec.MAX_DATA]),
            new Failed(new RemoteFailure(2, RemoteFailure.Kind.LOST, 1, "all_reduce", "line\n  | \tline")),
            new Departed(0), new PeerMessage(1, 2, Long.MIN_VALUE, new byte[] {1, 2}));

    private static Message decode(ByteBuffer frame) throws ProtocolException {
        ByteBuffer header =
                ByteBuffer.allocate(MessageCodec.HEADER_BYTES).put(frame.slice(0, MessageCodec.HEADER_BYTES)).flip();
        ByteBuffer body = frame.slice(MessageCodec.HEADER_BYTES, frame.limit() - MessageCodec.HEADER_BYTES);
        if (MessageCodec.bodyLength(header, MessageCodec.MAX_BODY) != body.limit()) {
            throw new ProtocolException("another length");
        }
        return MessageCodec.decode(header, body);
    }

    @Test
    void everyMessageComesBack() throws Exception {
        for (Message message : ALL) {
            ByteBuffer frame = MessageCodec.encode(message);
            Message back = decode(frame);
            assertEquals(message.getClass(), back.getClass());
            assertEquals(frame, MessageCodec.encode(back), () -> "bytes of " + message);
        }
    }

    @Test
    void theLongestContributionFitsExactly() {
        ByteBuffer frame =
                MessageCodec.encode(new Contribution(1, 2, Call.ALL_GATHER, new byte[MessageCodec.MAX_DATA]));
        assertEquals(MessageCodec.MAX_BODY, frame.limit() - MessageCodec.HEADER_BYTES);
    }

    @Test
    void whatIsDamagedIsRefusedAndNothingWorse() {
        long seed = 42;
        Random random = new Random(seed);
        int refused = 0;
        for (int trial = 0; trial < 20_000; trial++) {
            Message message = ALL.get(random.nextInt(ALL.size()));
            if (message instanceof Contribution part && part.data().length > 0) {
                continue;
            }
            ByteBuffer frame = MessageCodec.encode(message);
            for (int flips = 1 + random.nextInt(4); flips > 0; flips--) {
                frame.put(random.nextInt(frame.limit()), (byte) random.nextInt(256));
            }
            if (random.nextBoolean()) { // the message is truncated, and its header states the new length
                frame.limit(MessageCodec.HEADER_BYTES + random.nextInt(frame.limit() - MessageCodec.HEADER_BYTES + 1));
                frame.putInt(Integer.BYTES, frame.limit() - MessageCodec.HEADER_BYTES);
            }
            try {
                decode(frame);
            } catch (ProtocolException e) {
                refused++;
            } catch (RuntimeException e) {
                throw new AssertionError("seed " + seed + ", trial " + trial + ", " + message, e);
            }
        }
        assertTrue(refused > 1_000, "only " + refused + " were damaged enough");
    }

    @Test
    void trailingBytesAreRefused() {
        ByteBuffer frame = MessageCodec.encode(new Departed(1));
        ByteBuffer longer = ByteBuffer.allocate(frame.limit() + 1).put(frame).rewind();
        longer.putInt(Integer.BYTES, longer.limit() - MessageCodec.HEADER_BYTES);
        assertThrows(ProtocolException.class, () -> decode(longer));
    }

    @Test
    void anotherVersionIsRecognisedWhateverFollows() throws Exception {
        for (Message message : List.of(ALL.get(0), ALL.get(1))) {
            ByteBuffer frame = MessageCodec.encode(message).putInt(MessageCodec.HEADER_BYTES, MessageCodec.VERSION + 1);
            assertEquals(MessageCodec.VERSION + 1, assertInstanceOf(OtherVersion.class, decode(frame)).version());
        }
    }

    @Test
    void textsAreCutAndHaveNoControlCharacters() throws Exception {
        Failed failed = (Failed) decode(
                MessageCodec.encode(new Failed(new RemoteFailure(1, "\u001b[2Jred\r" + "\u00e9".repeat(10_000)))));
        assertTrue(failed.failure().message().startsWith("?[2Jred?\u00e9"), failed.failure().message());
        assertEquals(MessageCodec.MAX_TEXT_CHARS, failed.failure().message().length());
    }

    @Test
    void proofsDependOnEverythingThatWasSaid() {
        Secret secret = Secret.of("file", "user");
        Hello hello = new Hello(new RankIdentity(1, 3, "h"), 2, new byte[] {4});
        RankIdentity zero = new RankIdentity(0, 5, "z");
        byte[] nonce = {6};
        byte[] proof = secret.proof(Secret.Side.MEMBER, hello, zero, nonce);
        assertTrue(Secret.same(proof, Secret.of("file", "user").proof(Secret.Side.MEMBER, hello, zero, nonce)));
        List<byte[]> others = List.of(secret.proof(Secret.Side.COORDINATOR, hello, zero, nonce),
                Secret.of("file", null).proof(Secret.Side.MEMBER, hello, zero, nonce),
                Secret.of("", "user").proof(Secret.Side.MEMBER, hello, zero, nonce),
                secret.proof(Secret.Side.MEMBER, new Hello(new RankIdentity(2, 3, "h"), 2, new byte[] {4}), zero,
                        nonce),
                secret.proof(Secret.Side.MEMBER, new Hello(new RankIdentity(1, 3, "h"), 3, new byte[] {4}), zero,
                        nonce),
                secret.proof(Secret.Side.MEMBER, new Hello(new RankIdentity(1, 3, "h"), 2, new byte[] {5}), zero,
                        nonce),
                secret.proof(Secret.Side.MEMBER, hello, new RankIdentity(0, 5, "y"), nonce),
                secret.proof(Secret.Side.MEMBER, hello, zero, new byte[] {7}));
        for (int other = 0; other < others.size(); other++) {
            assertTrue(!Secret.same(proof, others.get(other)), "variant " + other);
        }
    }
}
