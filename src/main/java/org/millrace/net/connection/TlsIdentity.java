package org.millrace.net.connection;

import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Identity of this process under TLS, and the peers that it trusts. Both ends of every stream present a certificate. If
 * the identity comes from a secret, all processes that know the secret have the same certificate. If the identity comes
 * from files, any certificate that the authority has signed identifies a rank.
 */
public final class TlsIdentity {

    private static final String[] PROTOCOLS = {"TLSv1.3"};
    /**
     * Cipher suites in the order of preference. AES with a key of 128 bits is a third faster than AES with 256 bits,
     * and 128 bits are strong enough.
     */
    private static final String[] CIPHERS =
            {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"};
    private static final List<String> KEY_TYPES = List.of("EC", "RSA", "Ed25519");
    private static final char[] NO_PASSWORD = {};
    private static final String CHALLENGE_PURPOSE = "millrace, challenge before TLS, version 1\n";

    private final SSLContext context;
    private final String description;
    /** Secret that both processes of a TCP connection must know before TLS begins. */
    private final byte[] challengeSecret;

    private TlsIdentity(SSLContext context, String description, String secret) {
        this.context = context;
        this.description = description;
        challengeSecret = (CHALLENGE_PURPOSE + secret).getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Returns this process's identity from the settings; null if data is not encrypted.
     *
     * @throws ConfigurationException if the settings contradict each other, or a file cannot be used
     */
    public static @Nullable TlsIdentity of(Configuration settings) {
        Optional<Path> certificate = settings.get(Settings.TLS_CERTIFICATE);
        Optional<Path> key = settings.get(Settings.TLS_KEY);
        Optional<Path> authority = settings.get(Settings.TLS_CA);
        boolean files = certificate.isPresent() && key.isPresent() && authority.isPresent();
        boolean any = certificate.isPresent() || key.isPresent() || authority.isPresent();
        String names =
                Settings.TLS_CERTIFICATE.name() + ", " + Settings.TLS_KEY.name() + " and " + Settings.TLS_CA.name();
        if (any && !(files && settings.get(Settings.TLS))) {
            throw new ConfigurationException(names + " go together, and with " + Settings.TLS.name() + "=1");
        }
        if (!settings.get(Settings.TLS)) {
            return null;
        }
        String secret = settings.get(Settings.SECRET);
        if (!files && secret.isEmpty()) {
            throw new ConfigurationException(Settings.TLS.name() + "=1 needs " + Settings.SECRET.name()
                    + ", the same on all ranks, or " + names + ": without, no rank can authenticate another");
        }
        try {
            return files ? ofFiles(certificate.get(), key.get(), authority.get(), secret) : ofSecret(secret);
        } catch (GeneralSecurityException | IOException e) {
            throw new ConfigurationException(
                    Settings.TLS.name() + "=1: " + (files ? names + " cannot be used: " : "") + e.getMessage());
        }
    }

    static TlsIdentity ofSecret(String secret) throws GeneralSecurityException, IOException {
        SecretCertificate certificate = SecretCertificate.of(secret);
        return of(certificate.key(), new Certificate[] {certificate.certificate()},
                new TrustManager[] {certificate.trust()}, "TLS by the secret", secret);
    }

    private static TlsIdentity ofFiles(Path certificate, Path key, Path authority, String secret)
            throws GeneralSecurityException, IOException {
        KeyStore trusted = empty();
        int number = 0;
        for (Certificate each : certificates(authority)) {
            trusted.setCertificateEntry("authority-" + number++, each);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
        factory.init(trusted);
        Collection<? extends Certificate> own = certificates(certificate);
        X509Certificate first = (X509Certificate) own.iterator().next();
        return of(privateKey(key), own.toArray(Certificate[]::new), factory.getTrustManagers(),
                "TLS as " + first.getSubjectX500Principal().getName(), secret);
    }

    private static TlsIdentity of(PrivateKey key, Certificate[] chain, TrustManager[] trust, String description,
            String secret) throws GeneralSecurityException, IOException {
        KeyStore own = empty();
        own.setKeyEntry("rank", key, NO_PASSWORD, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(own, NO_PASSWORD);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(keys.getKeyManagers(), trust, null);
        RecordCipher.install();
        return new TlsIdentity(context, description, secret);
    }

    private static KeyStore empty() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(Path file)
            throws GeneralSecurityException, IOException {
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> all = CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (all.isEmpty()) {
                throw new IOException(file + " has no certificate in it (PEM is expected)");
            }
            return all;
        }
    }

    private static PrivateKey privateKey(Path file) throws GeneralSecurityException, IOException {
        String text = Files.readString(file, StandardCharsets.ISO_8859_1);
        int begin = text.indexOf("-----BEGIN PRIVATE KEY-----");
        int end = text.indexOf("-----END PRIVATE KEY-----");
        if (begin < 0 || end < begin) {
            throw new IOException(file + " has no PRIVATE KEY in it that is not encrypted (PKCS#8 is expected: "
                    + "openssl pkcs8 -topk8 -nocrypt -in KEY -out FILE)");
        }
        byte[] encoded;
        try {
            encoded = Base64.getMimeDecoder().decode(text.substring(text.indexOf('\n', begin), end));
        } catch (IllegalArgumentException e) {
            throw new IOException(file + " has a damaged PRIVATE KEY in it: " + e.getMessage(), e);
        }
        for (String type : KEY_TYPES) {
            try {
                return KeyFactory.getInstance(type).generatePrivate(new PKCS8EncodedKeySpec(encoded));
            } catch (InvalidKeySpecException another) {
                // The key is of another type.
            }
        }
        throw new IOException(file + " has a key in it that is none of " + String.join(", ", KEY_TYPES));
    }

    /**
     * Wraps a stream that this process opens.
     *
     * @param shared data that the listener and its clients know besides the ranks' secret
     */
    public SocketChannel client(SocketChannel stream, byte[] shared) {
        return channel(stream, true, shared);
    }

    /**
     * Wraps a stream that this process has accepted. No TLS buffers are allocated before the client has passed the
     * {@link ChallengeResponse}.
     */
    public SocketChannel server(SocketChannel stream, byte[] shared) {
        return channel(stream, false, shared);
    }

    private SocketChannel channel(SocketChannel stream, boolean client, byte[] shared) {
        return new TlsChannel(stream, new ChallengeResponse(stream, client, challengeSecret, shared),
                () -> engine(client));
    }

    SSLEngine engine(boolean client) {
        SSLEngine engine = context.createSSLEngine();
        SSLParameters parameters = new SSLParameters(CIPHERS, PROTOCOLS);
        parameters.setNeedClientAuth(true);
        engine.setSSLParameters(parameters);
        engine.setUseClientMode(client);
        return engine;
    }

    @Override
    public String toString() {
        return description;
    }
}
