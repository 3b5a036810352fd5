package org.millrace.net.socket;

import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ForeignProtocol;
import org.millrace.net.connection.KeyedHash;

/**
 * The messages by which two processes restore a lost stream, little-endian. The asking process is the client, and the
 * other process answers. The processes exchanged their secrets when the connection was established.
 *
 * <pre>
 *   asks     0          8         12        14        16      32        40      48          64
 *            +----------+---------+---------+---------+-------+---------+-------+-----------+
 *            | MLRRESUM | version | stream  | end     | key   | attempt | epoch | random    |
 *            | 8 chars  | u32     | u16     | u16     | 2 i64 | i64     | i64   | 16 bytes  |
 *            +----------+---------+---------+---------+-------+---------+-------+-----------+
 *   answers  16 random bytes
 *   asks     HMAC-SHA256(secret of the answering process, the 64 bytes and the 16 bytes above)
 *   answers  16 bytes: {@link #KNOWN}, {@link #GONE}, {@link #CLOSED} or {@link #RESUMED} as u32, and 0;
 *            HMAC-SHA256(the same secret, the first two messages and these 16 bytes)
 * </pre>
 *
 * <p>
 * The field {@code end} is 1 if the client asks the receiving end of the connection, and 0 if it asks the sending end.
 * If the receiving end knows the connection, it first answers {@link #KNOWN}. It answers {@link #RESUMED} when the
 * thread that moves the connection's frames has begun to use the stream.
 */
final class ResumeFormat {

    /**
     * Identity of one end of a connection.
     *
     * @param attempt  random number of the client's attempt to connect; the number distinguishes clients with the same
     *                 key
     * @param receiver whether this is the receiving end
     */
    record Id(ConnectionKey key, long attempt, boolean receiver) {

        Id other() {
            return new Id(key, attempt, !receiver);
        }
    }

    static final int QUESTION_BYTES = 64;
    static final int CHALLENGE_BYTES = 16;
    static final int HASH_BYTES = 32;
    static final int ANSWER_BYTES = 16 + HASH_BYTES;

    /** Answer: the connection is known. */
    static final int KNOWN = 1;
    /**
     * Answer: the connection is unknown. It was lost, or this process has not established it yet, or it belongs to
     * another process. This is also the answer for a closed connection if {@link #CLOSED} does not apply.
     */
    static final int GONE = 2;
    /** Answer: the new stream replaces the lost stream. */
    static final int RESUMED = 3;
    /**
     * Answer: the connection was closed deliberately, see {@link StreamRecovery#close}, and the answering process still
     * remembers the close.
     */
    static final int CLOSED = 4;

    private static final byte[] MAGIC = "MLRRESUM".getBytes(StandardCharsets.US_ASCII);
    private static final int VERSION_OFFSET = 8;
    private static final int STREAM_OFFSET = 12;
    private static final int END_OFFSET = 14;
    private static final int KEY_OFFSET = 16;
    private static final int ATTEMPT_OFFSET = 32;
    private static final int EPOCH_OFFSET = 40;
    private static final int NONCE_OFFSET = 48;
    private static final SecureRandom RANDOM = new SecureRandom();

    private ResumeFormat() {}

    private static ByteBuffer allocate(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static ByteBuffer question(Id asked, int stream, long epoch) {
        byte[] nonce = new byte[QUESTION_BYTES - NONCE_OFFSET];
        RANDOM.nextBytes(nonce);
        return allocate(QUESTION_BYTES).put(0, MAGIC)
                .putInt(VERSION_OFFSET, StreamHello.VERSION)
                .putShort(STREAM_OFFSET, (short) stream)
                .putShort(END_OFFSET, (short) (asked.receiver ? 1 : 0))
                .putLong(KEY_OFFSET, asked.key.high())
                .putLong(KEY_OFFSET + Long.BYTES, asked.key.low())
                .putLong(ATTEMPT_OFFSET, asked.attempt)
                .putLong(EPOCH_OFFSET, epoch)
                .put(NONCE_OFFSET, nonce);
    }

    static ByteBuffer emptyQuestion() {
        return allocate(QUESTION_BYTES);
    }

    /** Throws an exception if the bytes received so far, up to the buffer's position, cannot begin a request. */
    static void checkBegin(ByteBuffer question) throws ProtocolException {
        for (int i = 0; i < Math.min(question.position(), MAGIC.length); i++) {
            if (question.get(i) != MAGIC[i]) {
                throw new ProtocolException("it speaks another protocol" + ForeignProtocol.suffix(question));
            }
        }
    }

    static Id asked(ByteBuffer question) {
        return new Id(new ConnectionKey(question.getLong(KEY_OFFSET), question.getLong(KEY_OFFSET + Long.BYTES)),
                question.getLong(ATTEMPT_OFFSET), question.getShort(END_OFFSET) == 1);
    }

    static int stream(ByteBuffer question) {
        return Short.toUnsignedInt(question.getShort(STREAM_OFFSET));
    }

    static long epoch(ByteBuffer question) {
        return question.getLong(EPOCH_OFFSET);
    }

    static ByteBuffer newChallenge() {
        byte[] random = new byte[CHALLENGE_BYTES];
        RANDOM.nextBytes(random);
        return ByteBuffer.wrap(random);
    }

    /** Returns the asking process's proof that it knows the secret. */
    static ByteBuffer proof(byte[] secret, ByteBuffer question, ByteBuffer challenge) {
        return ByteBuffer.wrap(KeyedHash.of(secret, whole(question), whole(challenge)));
    }

    static void checkProof(byte[] secret, ByteBuffer question, ByteBuffer challenge, ByteBuffer proof)
            throws ProtocolException {
        if (!MessageDigest.isEqual(proof(secret, question, challenge).array(), proof.array())) {
            throw new ProtocolException("it does not know this process's secret");
        }
    }

    static ByteBuffer answer(int what, byte[] secret, ByteBuffer question, ByteBuffer challenge) {
        ByteBuffer answer = allocate(ANSWER_BYTES).putInt(0, what);
        byte[] hash =
                KeyedHash.of(secret, whole(question), whole(challenge), answer.slice(0, ANSWER_BYTES - HASH_BYTES));
        return answer.put(ANSWER_BYTES - HASH_BYTES, hash);
    }

    static ByteBuffer emptyAnswer() {
        return allocate(ANSWER_BYTES);
    }

    /** Returns the value of an answer. Throws an exception if the answering process does not know the secret. */
    static int said(ByteBuffer answer, byte[] secret, ByteBuffer question, ByteBuffer challenge)
            throws ProtocolException {
        int what = answer.getInt(0);
        if (!MessageDigest.isEqual(answer(what, secret, question, challenge).array(), answer.array())) {
            throw new ProtocolException("another process answers on the port of the peer's");
        }
        return what;
    }

    private static ByteBuffer whole(ByteBuffer buffer) {
        return buffer.duplicate().clear();
    }
}
