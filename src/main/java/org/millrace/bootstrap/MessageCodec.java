package org.millrace.bootstrap;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ProtocolException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Departed;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.OtherVersion;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.bootstrap.Message.Present;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Received;
import org.millrace.bootstrap.Message.Recovery;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.net.connection.ForeignProtocol;
import org.millrace.net.connection.PeerText;

/**
 * Encodes messages as bytes, big-endian, and decodes them. Decoded bytes come from the network and are untrusted until
 * checked. Each length is compared with the number of available bytes. A frame consists of a header with magic, length
 * and type, and of a body.
 *
 * <pre>
 *   0        4        8      9
 *   | magic  | length | type | body: length bytes
 * </pre>
 */
final class MessageCodec {

    static final int MAGIC = 0x4D4C5243; // "MLRC"
    /** The word "TLS1". Under TLS, a rank's stream begins with the magic and this word. */
    private static final int TLS = 0x544C5331;
    static final int VERSION = 8;
    static final int HEADER_BYTES = 9;

    /** Maximum number of bytes that one rank may contribute to a collective call. */
    static final int MAX_DATA = 1 << 20;
    /**
     * Maximum length of a body in bytes. The longest body is a contribution: its rank, sequence, collective, length and
     * data.
     */
    static final int MAX_BODY = MAX_DATA + 17;
    /** Maximum length in bytes of a body from a side that has not yet proved that it knows the secret. */
    static final int MAX_BODY_BEFORE_PROOF = 16 << 10;
    /** Maximum length of a text in characters. The sender truncates longer texts, so that they always fit. */
    static final int MAX_TEXT_CHARS = 4000;

    private static final byte HELLO = 1;
    private static final byte CHALLENGE = 2;
    private static final byte PROOF = 3;
    private static final byte REJECTED = 4;
    private static final byte PRESENT = 5;
    private static final byte CONTRIBUTION = 6;
    private static final byte FAILED = 7;
    private static final byte DEPARTED = 8;
    private static final byte PEER_MESSAGE = 9;
    private static final byte RECOVERY = 10;
    private static final byte RECEIVED = 11;

    private MessageCodec() {}

    /** Returns the whole frame of a message, header and body, ready to be read. */
    static ByteBuffer encode(Message message) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(MAGIC);
            out.writeInt(0); // Place for the length, which is known only at the end.
            write(message, out);
        } catch (IOException impossible) {
            throw new UncheckedIOException("memory cannot fail to be written", impossible);
        }
        ByteBuffer frame = ByteBuffer.wrap(bytes.toByteArray());
        return frame.putInt(Integer.BYTES, frame.limit() - HEADER_BYTES);
    }

    private static void write(Message message, DataOutputStream out) throws IOException {
        switch (message) {
            case Hello hello -> {
                out.writeByte(HELLO);
                out.writeInt(VERSION);
                writeIdentity(hello.identity(), out);
                out.writeInt(hello.size());
                writeBytes(hello.nonce(), out);
            }
            case Challenge challenge -> {
                out.writeByte(CHALLENGE);
                out.writeInt(VERSION);
                writeIdentity(challenge.identity(), out);
                writeBytes(challenge.nonce(), out);
                writeBytes(challenge.proof(), out);
            }
            case Proof proof -> {
                out.writeByte(PROOF);
                writeBytes(proof.proof(), out);
            }
            case Rejected rejected -> {
                out.writeByte(REJECTED);
                writeText(rejected.reason(), out);
            }
            case Present present -> {
                out.writeByte(PRESENT);
                writeIdentity(present.identity(), out);
            }
            case Contribution part -> {
                out.writeByte(CONTRIBUTION);
                out.writeInt(part.rank());
                out.writeLong(part.sequence());
                out.writeByte(part.collective().ordinal());
                writeBytes(part.data(), out);
            }
            case Failed failed -> {
                out.writeByte(FAILED);
                out.writeInt(failed.failure().rank());
                out.writeByte(failed.failure().kind().ordinal());
                out.writeInt(failed.failure().peer());
                writeText(failed.failure().operation(), out);
                writeText(failed.failure().message(), out);
            }
            case Departed departed -> {
                out.writeByte(DEPARTED);
                out.writeInt(departed.rank());
            }
            case Recovery recovery -> {
                out.writeByte(RECOVERY);
                writeBytes(recovery.offer(), out);
            }
            case Received received -> {
                out.writeByte(RECEIVED);
                out.writeLong(received.frames());
            }
            case PeerMessage direct -> {
                out.writeByte(PEER_MESSAGE);
                out.writeInt(direct.from());
                out.writeInt(direct.to());
                out.writeLong(direct.tag());
                writeBytes(direct.data(), out);
            }
            case OtherVersion other -> throw new IllegalArgumentException("only our own version can be written");
        }
    }

    /** Returns the length of the body that follows a header, from 0 to {@code limit}. */
    static int bodyLength(ByteBuffer header, int limit) throws ProtocolException {
        int length = header.getInt(Integer.BYTES);
        if (header.getInt(0) != MAGIC || length == TLS) {
            throw new ProtocolException("speaks another protocol than Millrace's control plane: it begins with \""
                    + PeerText.line(new String(header.array(), 0, HEADER_BYTES, StandardCharsets.ISO_8859_1)) + "\""
                    + ForeignProtocol.suffix(header.duplicate().clear().position(HEADER_BYTES)));
        }
        if (length < 0 || length > limit) {
            throw new ProtocolException(
                    "announced a message of " + Integer.toUnsignedString(length) + " bytes; the limit is " + limit);
        }
        return length;
    }

    /** Returns the message of a whole frame. The caller passes the frame's header and body separately. */
    static Message decode(ByteBuffer header, ByteBuffer body) throws ProtocolException {
        byte type = header.get(2 * Integer.BYTES);
        try {
            Message message = readBody(type, body);
            if (body.hasRemaining() && !(message instanceof OtherVersion)) {
                throw new ProtocolException(
                        "sent a message of type " + type + " with " + body.remaining() + " bytes too many");
            }
            return message;
        } catch (BufferUnderflowException e) {
            throw new ProtocolException(
                    "sent a message of type " + type + " that ends too early, after " + body.limit() + " bytes");
        }
    }

    private static Message readBody(byte type, ByteBuffer in) throws ProtocolException {
        return switch (type) {
            case HELLO, CHALLENGE -> {
                int version = in.getInt();
                if (version != VERSION) {
                    yield new OtherVersion(version);
                }
                RankIdentity who = readIdentity(in);
                yield type == HELLO ? new Hello(who, in.getInt(), readBytes(in))
                        : new Challenge(who, readBytes(in), readBytes(in));
            }
            case PROOF -> new Proof(readBytes(in));
            case REJECTED -> new Rejected(readLine(in));
            case PRESENT -> new Present(readIdentity(in));
            case CONTRIBUTION -> new Contribution(in.getInt(), in.getLong(),
                    oneOf(Call.values(), in.get(), "sent a part of unknown collective "), readBytes(in));
            case FAILED -> new Failed(new RemoteFailure(in.getInt(),
                    oneOf(RemoteFailure.Kind.values(), in.get(), "reported a failure of unknown kind "), in.getInt(),
                    readLine(in), PeerText.lines(text(in))));
            case DEPARTED -> new Departed(in.getInt());
            case PEER_MESSAGE -> new PeerMessage(in.getInt(), in.getInt(), in.getLong(), readBytes(in));
            case RECOVERY -> new Recovery(readBytes(in));
            case RECEIVED -> new Received(in.getLong());
            default -> throw new ProtocolException("sent a message of unknown type " + type);
        };
    }

    private static <T> T oneOf(T[] known, int ordinal, String otherwise) throws ProtocolException {
        if (ordinal < 0 || ordinal >= known.length) {
            throw new ProtocolException(otherwise + ordinal);
        }
        return known[ordinal];
    }

    private static void writeIdentity(RankIdentity identity, DataOutputStream out) throws IOException {
        out.writeInt(identity.rank());
        out.writeLong(identity.pid());
        writeText(identity.host(), out);
        writeText(identity.run(), out);
        writeText(identity.kernel(), out);
        out.writeLong(identity.startTicks());
    }

    private static RankIdentity readIdentity(ByteBuffer in) {
        return new RankIdentity(in.getInt(), in.getLong(), readLine(in), readLine(in), readLine(in), in.getLong());
    }

    private static void writeText(String text, DataOutputStream out) throws IOException {
        String cut = text.length() <= MAX_TEXT_CHARS ? text : text.substring(0, MAX_TEXT_CHARS - 3) + "...";
        writeBytes(cut.getBytes(StandardCharsets.UTF_8), out);
    }

    private static String readLine(ByteBuffer in) {
        return PeerText.line(text(in));
    }

    private static String text(ByteBuffer in) {
        return new String(readBytes(in), StandardCharsets.UTF_8);
    }

    private static void writeBytes(byte[] bytes, DataOutputStream out) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    private static byte[] readBytes(ByteBuffer in) {
        int length = in.getInt();
        if (length < 0 || length > in.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }
}
