package org.millrace.engine.bootstrap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.bootstrap.Message.Hello;
import org.millrace.net.connection.KeyedHash;

/**
 * What all ranks of a group know and nobody else does. Each side shows that it knows it by a keyed hash over both
 * sides' nonces and words; the secret itself is never sent. The two sides hash different words, so that neither can
 * answer with what it was just sent.
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
     * The secret of a group.
     *
     * @param fromFile   what the rendezvous file says, or empty
     * @param configured what the user set, or null. With neither, everybody knows the secret; the handshake is the
     *                   same.
     */
    static Secret of(String fromFile, @Nullable String configured) {
        String set = configured == null ? "" : configured;
        return new Secret("millrace\n" + fromFile + '\n' + set, !(fromFile + set).isEmpty());
    }

    /** False if everybody knows it. */
    boolean isSecret() {
        return isSecret;
    }

    /** 16 random bytes: a nonce, or a secret for a file. */
    static byte[] randomBytes() {
        byte[] bytes = new byte[NONCE_BYTES];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    static String randomHex() {
        return HexFormat.of().formatHex(randomBytes());
    }

    /** Whose proof or frames: each hashes another word, so that neither side can answer with what it was just sent. */
    enum Side {
        COORDINATOR, MEMBER;

        private final String word = name().toLowerCase(Locale.ROOT);
    }

    /** What a side shows. */
    byte[] proof(Side side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return hash(side.word, hello, coordinator, challenge);
    }

    /** The codes of what a side says after it has shown that. */
    FrameSeal seal(Side side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return new FrameSeal(hash("frames of the " + side.word, hello, coordinator, challenge));
    }

    /** What both ends of a stream show that they know before TLS begins. */
    byte[] forTls() {
        return KeyedHash.of(key, ByteBuffer.wrap("before TLS".getBytes(StandardCharsets.UTF_8)));
    }

    /** Compares in a time that does not tell where the two differ. */
    static boolean same(byte[] expected, byte[] given) {
        return MessageDigest.isEqual(expected, given);
    }

    /** Each part with its length, so that no two lists of parts hash the same bytes. */
    private byte[] hash(String side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        return KeyedHash.of(key, Stream
                .of(ByteBuffer.wrap(side.getBytes(StandardCharsets.UTF_8)), MessageCodec.encode(hello),
                        MessageCodec.encode(new Message.Present(coordinator)), ByteBuffer.wrap(challenge))
                .flatMap(part -> Stream.of(ByteBuffer.allocate(Integer.BYTES).putInt(0, part.remaining()), part))
                .toArray(ByteBuffer[]::new));
    }
}
