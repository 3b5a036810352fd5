package org.millrace.bootstrap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.net.connection.KeyedHash;

/**
 * Secret that only the ranks of a group know. Each side proves its knowledge by a keyed hash of both sides' nonces and
 * handshake fields. The secret itself is never sent. The two sides hash different words, so that neither can answer
 * with the proof that it has just received.
 */
final class Secret {

    private static final int NONCE_BYTES = 16;
    private static final SecureRandom RANDOM = new SecureRandom();

    private final byte[] key;
    private final boolean isSecret;

    private Secret(String text, boolean isSecret) {
        this.key = text.getBytes(StandardCharsets.UTF_8);
        this.isSecret = isSecret;
    }

    /**
     * Returns the secret of a group.
     *
     * @param fromFile   secret of the rendezvous file, or empty
     * @param configured secret that the user set, or null. If both are missing, every process can know the resulting
     *                   secret. The handshake has the same messages in any case.
     */
    static Secret of(String fromFile, @Nullable String configured) {
        String set = configured == null ? "" : configured;
        return new Secret("millrace\n" + fromFile + '\n' + set, !(fromFile + set).isEmpty());
    }

    /** Returns false if every process can know the secret. */
    boolean isSecret() {
        return isSecret;
    }

    /** Returns 16 random bytes for a nonce or for the secret of a file. */
    static byte[] randomBytes() {
        byte[] bytes = new byte[NONCE_BYTES];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    static String randomHex() {
        return HexFormat.of().formatHex(randomBytes());
    }

    /**
     * Side that sends a proof or frames. The two sides hash different words, so that neither side can answer with the
     * proof that it has just received.
     */
    enum Side {
        COORDINATOR, MEMBER;

        private final String word = name().toLowerCase(Locale.ROOT);
    }

    /** Returns the proof that a side sends. {@code challenge} is rank 0's nonce. */
    byte[] proof(Side side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return hash(side.word, hello, coordinator, challenge);
    }

    /**
     * Returns the object that computes the authentication codes of a side's frames. The frames follow the side's proof.
     */
    FrameSeal seal(Side side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return new FrameSeal(hash("frames of the " + side.word, hello, coordinator, challenge));
    }

    /** Returns the key that each end of a stream proves to know before TLS begins. */
    byte[] forTls() {
        return KeyedHash.of(key, ByteBuffer.wrap("before TLS".getBytes(StandardCharsets.UTF_8)));
    }

    /** Compares two byte arrays in a time that does not reveal the position of a difference. */
    static boolean same(byte[] expected, byte[] given) {
        return MessageDigest.isEqual(expected, given);
    }

    /** Hashes each part after its length, so that different lists of parts never have the same hash input. */
    private byte[] hash(String side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return KeyedHash.of(key, Stream
                .of(ByteBuffer.wrap(side.getBytes(StandardCharsets.UTF_8)), MessageCodec.encode(hello),
                        MessageCodec.encode(new Message.Present(coordinator)), ByteBuffer.wrap(challenge))
                .flatMap(part -> Stream.of(ByteBuffer.allocate(Integer.BYTES).putInt(0, part.remaining()), part))
                .toArray(ByteBuffer[]::new));
    }
}
