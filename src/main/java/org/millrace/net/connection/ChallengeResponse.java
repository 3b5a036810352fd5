package org.millrace.net.connection;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/**
 * The unencrypted exchange before TLS on a stream. The client proves that it knows the ranks' secret. To check the
 * proof, the listener computes one keyed hash. A TLS handshake costs milliseconds and hundreds of kilobytes. A listener
 * therefore begins TLS only with clients that have passed this exchange.
 *
 * <pre>
 *   client   "MLRCTLS1", 16 random bytes ─▶
 *          ◀─ 16 random bytes                             listener
 *            HMAC-SHA256(secret, shared, all of the above) ─▶
 * </pre>
 *
 * <p>
 * The listener proves nothing, so a client cannot use the listener's message to test guesses of the secret. An
 * eavesdropper or a false listener can test guesses, so the secret must be random. The client's random bytes prevent
 * answers that were computed in advance. A client that passes must still authenticate under TLS.
 */
final class ChallengeResponse {

    private static final byte[] MAGIC = ForeignProtocol.TLS_RANK.getBytes(StandardCharsets.US_ASCII);
    private static final int NONCE_BYTES = 16;
    private static final int ANSWER_BYTES = 32;
    private static final SecureRandom RANDOM = new SecureRandom();

    private final SocketChannel stream;
    private final boolean client;
    private final byte[] secret;
    private final byte[] shared;
    /** The client's first message. In a listener, this buffer receives the message. */
    private final ByteBuffer opening = ByteBuffer.allocate(MAGIC.length + NONCE_BYTES);
    private @Nullable ByteBuffer challenge;
    private @Nullable ByteBuffer answer;

    /**
     * Creates the object of one side, client or listener. Nothing is sent or received before the first call of
     * {@link #advance}.
     *
     * @param secret the ranks' secret
     * @param shared additional data that the listener and its clients know. All listeners of one kind have data of the
     *               same length
     */
    ChallengeResponse(SocketChannel stream, boolean client, byte[] secret, byte[] shared) {
        this.stream = stream;
        this.client = client;
        this.secret = secret;
        this.shared = shared;
        if (client) {
            opening.put(MAGIC).put(random()).flip();
        }
    }

    /**
     * Continues the exchange without waiting. Returns true when it is complete.
     *
     * @throws ProtocolException if the client does not know the secret, or violates the protocol
     */
    boolean advance() throws IOException {
        return client ? answered() : examined();
    }

    private boolean answered() throws IOException {
        if (!written(opening)) {
            return false;
        }
        if (challenge == null) {
            challenge = ByteBuffer.allocate(NONCE_BYTES);
        }
        if (challenge.hasRemaining() && !read(challenge)) {
            return false;
        }
        if (answer == null) {
            if (ForeignProtocol.isCertain(challenge)) {
                throw foreign("speaks another protocol", challenge);
            }
            answer = ByteBuffer.wrap(answer(challenge));
        }
        return written(answer);
    }

    private boolean examined() throws IOException {
        if (opening.hasRemaining()) {
            boolean whole = read(opening);
            checkBegin();
            if (!whole) {
                return false;
            }
        }
        if (challenge == null) {
            challenge = ByteBuffer.wrap(random());
            answer = ByteBuffer.allocate(ANSWER_BYTES);
        }
        if (!written(challenge) || !read(answer)) {
            return false;
        }
        if (!MessageDigest.isEqual(answer(challenge), answer.array())) {
            throw new ProtocolException("does not know this group's secret: its answer before TLS is not that of a "
                    + "process with the same secret and the address of this listener");
        }
        return true;
    }

    private void checkBegin() throws IOException {
        for (int i = 0; i < Math.min(opening.position(), MAGIC.length); i++) {
            if (opening.get(i) != MAGIC[i]) {
                if (ForeignProtocol.isClearRank(opening)) {
                    // A rank without TLS interprets these bytes as a reply. Its error message then names TLS as the
                    // reason.
                    stream.write(ByteBuffer.allocate(HandshakeReply.BYTES).put(0, MAGIC));
                }
                throw foreign("does not begin as a rank under MILLRACE_TLS=1 does, which must be set on all ranks or"
                        + " on none", opening);
            }
        }
    }

    private static ProtocolException foreign(String what, ByteBuffer received) {
        return new ProtocolException(what + ": it begins with \"" + HelloFormat.excerpt(received.duplicate().flip())
                + "\"" + ForeignProtocol.suffix(received));
    }

    private static byte[] random() {
        byte[] bytes = new byte[NONCE_BYTES];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    private byte[] answer(ByteBuffer question) {
        return KeyedHash.of(secret, ByteBuffer.wrap(shared), ByteBuffer.wrap(opening.array()),
                ByteBuffer.wrap(question.array()));
    }

    private boolean written(ByteBuffer from) throws IOException {
        if (from.hasRemaining()) {
            stream.write(from);
        }
        return !from.hasRemaining();
    }

    private boolean read(ByteBuffer to) throws IOException {
        if (to.hasRemaining() && stream.read(to) < 0) {
            throw new EOFException("the peer closed the stream");
        }
        return !to.hasRemaining();
    }
}
