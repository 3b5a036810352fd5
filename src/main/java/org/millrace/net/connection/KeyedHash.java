package org.millrace.net.connection;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Computes HMAC-SHA256. Only a process that knows the key can compute the hash, which reveals nothing about the key.
 */
public final class KeyedHash {

    private static final String ALGORITHM = "HmacSHA256";

    private KeyedHash() {}

    /** Returns the 32-byte hash of all parts in sequence. Afterwards each part's position is at its limit. */
    public static byte[] of(byte[] key, ByteBuffer... parts) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(key, ALGORITHM));
            for (ByteBuffer part : parts) {
                mac.update(part);
            }
            return mac.doFinal();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(ALGORITHM + " is missing, which every Java platform must have", e);
        }
    }
}
