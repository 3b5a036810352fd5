package org.millrace.engine.bootstrap;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import org.millrace.net.connection.KeyedHash;

/**
 * The authentication codes of the frames that go one way on a connection: a keyed hash over a frame's number and bytes,
 * under a key that follows from the secret and from what both sides said in the handshake. Who does not know it can
 * neither change a frame, nor leave one out, nor repeat one. Used by one thread at a time.
 */
final class FrameSeal {

    /** Length of a code, which comes behind its frame. */
    static final int BYTES = 16;

    private final byte[] key;
    private long number;

    FrameSeal(byte[] key) {
        this.key = key;
    }

    /** How many frames there were. */
    long frames() {
        return number;
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
        return Arrays.copyOf(KeyedHash.of(key, ByteBuffer.allocate(Long.BYTES).putLong(0, number++), first, second),
                BYTES);
    }
}
