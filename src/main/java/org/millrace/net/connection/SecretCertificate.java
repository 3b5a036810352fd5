package org.millrace.net.connection;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.NamedParameterSpec;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * A certificate that is derived from a secret. All processes that know the secret derive the same certificate, so a
 * process that proves possession of the private key knows the secret. The key is an Ed25519 key. The private half of
 * such a key can be any 32 bytes. Here the private half is a hash of the secret. Session keys do not depend on the
 * private key, so recorded data stays unreadable even if the secret becomes known.
 */
record SecretCertificate(PrivateKey key, X509Certificate certificate) {

    private static final String PURPOSE = "millrace, identity under TLS, version 1";

    // Constants of DER: tags, and the object identifiers 1.3.101.112 (Ed25519) and 2.5.4.3 (common name).
    private static final int SEQUENCE = 0x30;
    private static final int SET = 0x31;
    private static final int INTEGER = 2;
    private static final int BIT_STRING = 3;
    private static final int UTF8 = 0xC;
    private static final int UTC_TIME = 0x17;
    private static final int TIME = 0x18;
    private static final int VERSION = 0xA0;
    private static final byte[] ED25519 = {6, 3, 0x2B, 0x65, 0x70};
    private static final byte[] COMMON_NAME = {6, 3, 0x55, 4, 3};

    static SecretCertificate of(String secret) throws GeneralSecurityException {
        byte[] seed = KeyedHash.of(secret.getBytes(StandardCharsets.UTF_8), ByteBuffer.wrap(ascii(PURPOSE)));
        KeyPairGenerator generator = KeyPairGenerator.getInstance("Ed25519");
        generator.initialize(NamedParameterSpec.ED25519, new Chosen(seed));
        KeyPair pair = generator.generateKeyPair();
        byte[] algorithm = der(SEQUENCE, ED25519);
        byte[] name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, ascii("millrace")))));
        byte[] validity = der(SEQUENCE, der(UTC_TIME, ascii("000101000000Z")), der(TIME, ascii("99991231235959Z")));
        byte[] signed = der(SEQUENCE, der(VERSION, der(INTEGER, new byte[] {2})), der(INTEGER, new byte[] {1}),
                algorithm, name, validity, name, pair.getPublic().getEncoded());
        Signature signature = Signature.getInstance("Ed25519");
        signature.initSign(pair.getPrivate());
        signature.update(signed);
        byte[] whole = der(SEQUENCE, signed, algorithm, der(BIT_STRING, new byte[1], signature.sign()));
        return new SecretCertificate(pair.getPrivate(), (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(whole)));
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    /** Encodes a DER element: tag, length, and the parts of its content. */
    private static byte[] der(int tag, byte[]... parts) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            content.writeBytes(part);
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(tag);
        int length = content.size();
        if (length > 0xFF) {
            all.write(0x82);
            all.write(length >> Byte.SIZE);
        } else if (length > 0x7F) {
            all.write(0x81);
        }
        all.write(length);
        all.writeBytes(content.toByteArray());
        return all.toByteArray();
    }

    X509ExtendedTrustManager trust() {
        return new Same(certificate.getPublicKey().getEncoded());
    }

    /** Source of "random" bytes that returns given bytes. The key generator makes the private key from them. */
    private static final class Chosen extends SecureRandom {

        private static final long serialVersionUID = 1L;

        private final byte[] bytes;

        Chosen(byte[] bytes) {
            this.bytes = bytes;
        }

        @Override
        public void nextBytes(byte[] to) {
            if (to.length != bytes.length) {
                throw new IllegalStateException("a key of " + to.length + " bytes, where " + bytes.length
                        + " are chosen: this Java makes Ed25519's keys in another way");
            }
            System.arraycopy(bytes, 0, to, 0, to.length);
        }
    }

    /** Trusts only a peer with this public key. TLS itself verifies that the peer has the private key. */
    private static final class Same extends X509ExtendedTrustManager {

        private final byte[] key;

        Same(byte[] key) {
            this.key = key;
        }

        private void check(X509Certificate[] chain) throws CertificateException {
            if (chain.length == 0 || !MessageDigest.isEqual(key, chain[0].getPublicKey().getEncoded())) {
                throw new CertificateException("the peer does not know the secret (MILLRACE_SECRET)");
            }
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            check(chain);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            check(chain);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            check(chain);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
