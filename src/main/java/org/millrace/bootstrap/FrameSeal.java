package org.millrace.bootstrap;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import org.millrace.net.connection.KeyedHash;

/**
 * Authentication codes of the frames in one direction of a connection. A code is a keyed hash of a frame's number and
 * bytes. The key is derived from the secret and from both sides' handshake messages. Without the key, an attacker
 * cannot change, omit or repeat a frame undetected. Used by one thread at a time.
 */
final class FrameSeal {

    /** Length in bytes of a code, which follows its frame. */
    static final int BYTES = 16;

    private final byte[] key;
    private long number;

    FrameSeal(byte[] key) {
        this.key = key;
    }

    /** Returns the number of frames that were sealed or checked so far. */
    long frames() {
        return number;
    }

    /** Returns a copy of the next frame, followed by the frame's authentication code. */
    ByteBuffer sealed(ByteBuffer frame) {
        ByteBuffer sealed = ByteBuffer.allocate(frame.remaining() + BYTES);
        sealed.put(frame.duplicate());
        return sealed.put(code(frame.duplicate(), ByteBuffer.allocate(0))).flip();
    }

    /**
     * Returns whether {@code code} is the code of the next frame, which consists of {@code header} and {@code body}.
     */
    boolean fits(ByteBuffer header, ByteBuffer body, byte[] code) {
        return MessageDigest.isEqual(code(header, body), code);
    }

    private byte[] code(ByteBuffer first, ByteBuffer second) {
        return Arrays.copyOf(KeyedHash.of(key, ByteBuffer.allocate(Long.BYTES).putLong(0, number++), first, second),
                BYTES);
    }
}
