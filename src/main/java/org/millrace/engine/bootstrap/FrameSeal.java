package org.millrace.engine.bootstrap;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The authentication codes of the frames that go one way on a connection: a keyed hash over a frame's number and bytes,
 * under a key that follows from the secret and from what both sides said in the handshake. Who does not know it can
 * neither change a frame, nor leave one out, nor repeat one. Used by one thread at a time.
 */
final class FrameSeal {

    /** Length of a code, which comes behind its frame. */
    static final int BYTES = 16;

    private static final String ALGORITHM = "HmacSHA256";

    private final Mac mac;
    private long number;

    FrameSeal(byte[] key) {
        try {
            mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(key, ALGORITHM));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(ALGORITHM + " is missing, which every Java platform must have", e);
        }
    }

    /** The next frame with its code behind it. */
    ByteBuffer sealed(ByteBuffer frame) {
        ByteBuffer sealed = ByteBuffer.allocate(frame.remaining() + BYTES);
        sealed.put(frame.duplicate());
        return sealed.put(code(frame.duplicate(), ByteBuffer.allocate(0))).flip();
    }

    /** Whether a code is that of the next frame. */
    boolean fits(ByteBuffer header, ByteBuffer body, byte[] code) {
        return MessageDigest.isEqual(code(header, body), code);
    }

    private byte[] code(ByteBuffer first, ByteBuffer second) {
        mac.update(ByteBuffer.allocate(Long.BYTES).putLong(0, number++));
        mac.update(first);
        mac.update(second);
        return Arrays.copyOf(mac.doFinal(), BYTES);
    }
}
