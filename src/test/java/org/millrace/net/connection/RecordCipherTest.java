package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Arrays;
import java.util.Random;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A cipher that decrypts from a copy of the record, with the same result as the JDK's cipher. Only streams under TLS
 * use this cipher.
 */
class RecordCipherTest {

    private static final int TAG = 16;
    private static final byte[] HEADER = {23, 3, 3, 1, 0};

    private final SecretKeySpec key =
            new SecretKeySpec(new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}, "AES");
    private final GCMParameterSpec nonce = new GCMParameterSpec(8 * TAG, new byte[12]);

    private byte[] encrypted(byte[] plain) throws Exception {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, key, nonce);
        cipher.updateAAD(HEADER);
        return cipher.doFinal(plain);
    }

    private RecordCipher opener() throws Exception {
        RecordCipher cipher = new RecordCipher();
        cipher.engineInit(Cipher.DECRYPT_MODE, key, nonce, new SecureRandom());
        cipher.engineUpdateAAD(HEADER, 0, HEADER.length);
        return cipher;
    }

    private static byte[] random(int bytes) {
        byte[] all = new byte[bytes];
        new Random(bytes).nextBytes(all);
        return all;
    }

    /** Input and output overlap in one larger array, as in the calls by the JDK's TLS. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 495, 496, 511, 512, 513, 4096, 16_383, 16_384})
    void decryptsInItsPlace(int bytes) throws Exception {
        byte[] plain = random(bytes);
        byte[] all = random(bytes + TAG + 100);
        byte[] expected = all.clone();
        System.arraycopy(encrypted(plain), 0, all, 60, bytes + TAG);
        System.arraycopy(plain, 0, expected, 60, bytes);
        ByteBuffer slice = ByteBuffer.wrap(all, 10, all.length - 10).slice();
        ByteBuffer from = slice.duplicate().position(50).limit(50 + bytes + TAG);
        ByteBuffer to = slice.duplicate().position(50);
        assertEquals(bytes, opener().engineDoFinal(from, to));
        assertFalse(from.hasRemaining());
        assertEquals(50 + bytes, to.position());
        assertArrayEquals(Arrays.copyOf(expected, 60 + bytes), Arrays.copyOf(all, 60 + bytes));
        assertArrayEquals(Arrays.copyOfRange(expected, 60 + bytes + TAG, all.length),
                Arrays.copyOfRange(all, 60 + bytes + TAG, all.length));
    }

    @ParameterizedTest
    @ValueSource(ints = {64, 16_384})
    void noticesEveryByteThatIsChanged(int bytes) throws Exception {
        byte[] good = encrypted(random(bytes));
        for (int at = 0; at < good.length; at += at < 64 || at > good.length - 64 ? 1 : 1009) {
            byte[] bad = good.clone();
            bad[at] ^= 1;
            RecordCipher cipher = opener();
            assertThrows(AEADBadTagException.class,
                    () -> cipher.engineDoFinal(ByteBuffer.wrap(bad), ByteBuffer.wrap(bad)));
        }
    }

    @Test
    void othersGetTheJdks() throws Exception {
        RecordCipher.install();
        RecordCipher.install();
        assertNotNull(Security.getProvider("MillraceTls"));
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        assertEquals("SunJCE", cipher.getProvider().getName());
        assertArrayEquals(encrypted(random(100)), encrypted(random(100)));
    }
}
