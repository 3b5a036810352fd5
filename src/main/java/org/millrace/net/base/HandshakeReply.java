package org.millrace.net.base;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.net.socket.handshake.StreamHello;

/**
 * What a listener answers on each stream, little-endian, the same in all versions.
 *
 * <pre>
 *   0          8         12       16
 *   +----------+---------+--------+
 *   | magic    | version | answer |
 *   | 8 chars  | u32     | u32    |
 *   +----------+---------+--------+
 * </pre>
 *
 * <p>
 * An answer's number on the wire is its place here: add new ones at the end.
 */
public enum HandshakeReply {

    /** Frames follow. */
    ACCEPTED("accepted"),
    /** The hello was of another version. */
    OTHER_VERSION("it speaks another version of the protocol: use the same Millrace on all hosts"),
    /** The hello's secret is not this listener's. */
    WRONG_SECRET(
            "it does not know the secret in the address: the address is an older listener's, or another job's, that had the same port"),
    /** Nobody expected this key in time. */
    UNKNOWN_KEY(
            "it expects no connection with this key: the two sides disagree on who connects to whom, or the accepting side is not there yet"),
    /** Another client has this key. */
    KEY_TAKEN("the key is taken: another client connected with it, or the accepting side gave it up"),
    /** The numbers of streams make no sense. */
    MALFORMED("it cannot make sense of the hello's streams");

    public static final int BYTES = 16;

    private static final int VERSION_OFFSET = 8;
    private static final int ANSWER_OFFSET = 12;
    private static final HandshakeReply[] BY_NUMBER = values();

    private final String text;

    HandshakeReply(String text) {
        this.text = text;
    }

    /** Why, as a peer is told: "it ...". */
    public String text() {
        return text;
    }

    public ByteBuffer encode() {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(0, StreamHello.MAGIC);
        bytes.putInt(VERSION_OFFSET, StreamHello.VERSION);
        bytes.putInt(ANSWER_OFFSET, ordinal());
        return bytes;
    }

    /** The answer in these bytes; null if it is one of a later version's. */
    public static HandshakeReply decode(ByteBuffer bytes) {
        int number = bytes.getInt(ANSWER_OFFSET);
        return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : null;
    }
}
