package org.millrace.engine.bootstrap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.bootstrap.Message.Hello;

/**
 * What all ranks of a group know and strangers do not. Each side shows that it knows it by a keyed hash over both
 * sides' nonces and words; the secret itself is never sent. The two sides hash different words, so that neither can
 * answer with what it was just sent.
 */
final class Secret {

    private static final String ALGORITHM = "HmacSHA256";
    private static final int NONCE_BYTES = 16;
    private static final SecureRandom RANDOM = new SecureRandom();

    private final SecretKeySpec key;
    private final boolean isSecret;

    private Secret(String text, boolean isSecret) {
        this.key = new SecretKeySpec(text.getBytes(StandardCharsets.UTF_8), ALGORITHM);
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

    /** What rank 0 shows. */
    byte[] coordinatorProof(Hello hello, RankIdentity coordinator, byte[] challenge) {
        return proof("coordinator", hello, coordinator, challenge);
    }

    /** What every other rank shows. */
    byte[] memberProof(Hello hello, RankIdentity coordinator, byte[] challenge) {
        return proof("member", hello, coordinator, challenge);
    }

    /** The codes of what rank 0 says after its challenge. */
    FrameSeal coordinatorSeal(Hello hello, RankIdentity coordinator, byte[] challenge) {
        return new FrameSeal(proof("frames of the coordinator", hello, coordinator, challenge));
    }

    /** The codes of what another rank says after its proof. */
    FrameSeal memberSeal(Hello hello, RankIdentity coordinator, byte[] challenge) {
        return new FrameSeal(proof("frames of the member", hello, coordinator, challenge));
    }

    /** What both ends of a stream show that they know before TLS begins. */
    byte[] forTls() {
        return mac().doFinal("before TLS".getBytes(StandardCharsets.UTF_8));
    }

    /** Compares in a time that does not tell where the two differ. */
    static boolean same(byte[] expected, byte[] given) {
        return MessageDigest.isEqual(expected, given);
    }

    private byte[] proof(String side, Hello hello, RankIdentity coordinator, byte[] challenge) {
        Mac mac = mac();
        update(mac, ByteBuffer.wrap(side.getBytes(StandardCharsets.UTF_8)));
        update(mac, MessageCodec.encode(hello));
        update(mac, MessageCodec.encode(new Message.Present(coordinator)));
        update(mac, ByteBuffer.wrap(challenge));
        return mac.doFinal();
    }

    private Mac mac() {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(key);
            return mac;
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(ALGORITHM + " is missing, which every Java platform must have", e);
        }
    }

    /** Each part with its length, so that no two lists of parts hash the same bytes. */
    private static void update(Mac mac, ByteBuffer part) {
        mac.update(ByteBuffer.allocate(Integer.BYTES).putInt(0, part.remaining()));
        mac.update(part);
    }
}
