package org.millrace.bootstrap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.millrace.MillraceException;
import org.millrace.net.connection.PeerText;

/**
 * Reader of the bytes that one rank passed to {@link ControlPlane#allGather}. All contents are checked before use. A
 * length is compared with the number of available bytes before any allocation.
 */
public final class RankLetter {

    private final int rank;
    private final String subject;
    private final ByteBuffer bytes;

    /**
     * @param rank    rank that wrote the bytes, for messages
     * @param subject description of the bytes' content, for messages
     */
    public RankLetter(int rank, String subject, byte[] bytes) {
        this.rank = rank;
        this.subject = subject;
        this.bytes = ByteBuffer.wrap(bytes);
    }

    private void require(long wanted, String what) {
        if (wanted < 0 || wanted > bytes.remaining()) {
            throw damaged(what + " of " + wanted + " bytes where " + bytes.remaining() + " of " + bytes.limit()
                    + " are left");
        }
    }

    /** Returns the exception for invalid bytes. */
    public MillraceException damaged(String why) {
        return new MillraceException("the message of rank " + rank + " about " + subject + " cannot be read: " + why
                + "; all ranks need the same release");
    }

    /** Reads 4 bytes. */
    public int number() {
        require(Integer.BYTES, "a number");
        return bytes.getInt();
    }

    /** Reads a number within a range. */
    public int number(String what, int least, int most) {
        int number = number();
        if (number < least || number > most) {
            throw damaged(what + " is " + number + ", where " + least + " to " + most + " are expected");
        }
        return number;
    }

    /** Reads 8 bytes. */
    public long longNumber() {
        require(Long.BYTES, "a number");
        return bytes.getLong();
    }

    /** Reads the given number of bytes. */
    public byte[] bytes(String what, int count) {
        require(count, what);
        byte[] read = new byte[count];
        bytes.get(read);
        return read;
    }

    /** Reads a length of 4 bytes, and then a byte array of this length. */
    public byte[] sized(String what) {
        return bytes(what, number());
    }

    /** Reads a length of 4 bytes, and then a text of this length in bytes. */
    public String text(String what) {
        return PeerText.line(new String(sized(what), StandardCharsets.UTF_8));
    }

    /** Throws if not all bytes were read. */
    public void end() {
        if (bytes.hasRemaining()) {
            throw damaged("it has " + bytes.remaining() + " of " + bytes.limit() + " bytes after its end");
        }
    }
}
