package org.millrace.net.connection;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;

/**
 * A listener's reply to a hello, little-endian, the same in all versions.
 *
 * <pre>
 *   0          8         12      13      16
 *   +----------+---------+-------+-------+
 *   | magic    | version | reply | pid   |
 *   | 8 chars  | u32     | u8    | u24   |
 *   +----------+---------+-------+-------+
 * </pre>
 *
 * <p>
 * The message contains the ordinal of a {@code HandshakeReply} constant as the number of the reply. Add new constants
 * at the end.
 */
public enum HandshakeReply {

    /** The connection is accepted, and the client may send frames. */
    ACCEPTED("accepted"),
    /** The hello has another protocol version than this listener. */
    OTHER_VERSION("it speaks another version of the protocol: use the same Millrace in all processes"),
    /** The secret in the hello differs from this listener's secret. */
    WRONG_SECRET(
            "it does not know the secret in the address: the address is damaged, or another listener's, such as an "
                    + "older one's or another job's that had the same port"),
    /** No connection with this key was expected in time. */
    UNKNOWN_KEY("it expects no connection with this key: the two sides disagree on who connects to whom, or the "
            + "accepting side is not there yet"),
    /** Another client has used this key, or the accepting side has given the connection up. */
    KEY_TAKEN("the key is taken: another client connected with it, or the accepting side gave it up"),
    /** The hello's numbers of streams are invalid. */
    MALFORMED("the hello's streams are not valid"),
    /** The listener cannot map the ring that the hello names. */
    NO_RING("it cannot map the ring: see its log"),
    /** The listener must read the client's memory directly, but cannot. */
    NO_SINGLE_COPY("it cannot read this process's memory, and MILLRACE_SHM_SINGLE_COPY=1 requires that: see its log"),
    /** The two processes have loaded different network plugins. */
    OTHER_PLUGIN("it has loaded another network plugin: MILLRACE_NET must be the same in all processes"),
    /** No device of the listener accepts a connection. */
    NO_DEVICE("its network plugin has no device that takes a connection: see its log"),
    /**
     * The listener cannot open the ring, which is a sealed file without a directory. The client tries again with a ring
     * in a directory.
     */
    NO_SEALED_RING("it cannot open the ring, which lies in no directory");

    /** Reason why a listener refuses a client. */
    public static final class Refusal extends Exception {

        private static final long serialVersionUID = 1L;

        private final transient @Nullable HandshakeReply reply;

        /**
         * @param reply   the reply to the client; null to send none, because the client is no peer
         * @param message description of the client's action, for the log
         */
        public Refusal(@Nullable HandshakeReply reply, String message) {
            super(message, null, false, false);
            this.reply = reply;
        }

        @Nullable
        HandshakeReply reply() {
            return reply;
        }
    }

    /** Failure at the client: a listener has refused the connection. */
    public static final class Refused extends ConnectionException {

        private static final long serialVersionUID = 1L;

        private final @Nullable HandshakeReply reply;

        private Refused(@Nullable HandshakeReply reply, String message) {
            super(message);
            this.reply = reply;
        }

        /** Returns the listener's reply; null if a later version defines it. */
        public @Nullable HandshakeReply reply() {
            return reply;
        }
    }

    /**
     * Failure at the client: a listener ended the connection without a reply. Either the listener's process has ended,
     * or the listener has dropped a client that was not identified yet. A listener that has dropped a client accepts
     * the client if it connects again.
     */
    public static final class Unanswered extends ConnectionException {

        private static final long serialVersionUID = 1L;

        public Unanswered(String message) {
            super(message);
        }

        public Unanswered(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** Last part of the message about an answer in another protocol. This part states the possible causes. */
    public static final String OTHER_PROGRAM = "; either the two processes differ in their settings, or the listener's "
            + "process ended and its port is used by another program, or something between answers for it";
    /** Length of a reply in bytes. */
    public static final int BYTES = 16;

    private static final int REPLY_OFFSET = 12;
    /**
     * Mask that selects the reply's number in its word. The higher bits of the word contain the process ID, which has
     * at most 22 bits on Linux.
     */
    private static final int REPLY_MASK = 0xff;
    private static final int PID_SHIFT = 8;
    private static final HandshakeReply[] BY_NUMBER = values();

    private final String text;

    HandshakeReply(String text) {
        this.text = text;
    }

    public ByteBuffer encode(HelloFormat protocol) {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        protocol.encodeCommon(bytes);
        return bytes.putInt(REPLY_OFFSET, ordinal() | (int) ProcessHandle.current().pid() << PID_SHIFT);
    }

    /** Returns the reply in a message; null if a later version defines it. */
    public static @Nullable HandshakeReply decode(ByteBuffer bytes) {
        int number = bytes.getInt(REPLY_OFFSET) & REPLY_MASK;
        return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : null;
    }

    /** Returns the process ID of the sender of a reply. */
    public static long pidIn(ByteBuffer bytes) {
        return bytes.getInt(REPLY_OFFSET) >>> PID_SHIFT;
    }

    /**
     * Returns whether a listener has accepted the connection; false while its reply is incomplete.
     *
     * @param received received bytes of the reply, up to the position
     * @param ended    whether the stream has ended
     * @throws Refused             if the listener refused
     * @throws Unanswered          if the listener is gone
     * @throws ConnectionException if the process at the address is no listener of this network
     */
    public static boolean accepts(String listener, HelloFormat protocol, ByteBuffer received, boolean ended) {
        if (!protocol.isBegunBy(received)) {
            throw new ConnectionException(
                    listener + " speaks another protocol: got '" + HelloFormat.excerpt(received.duplicate().flip())
                            + "'" + ForeignProtocol.suffix(received) + OTHER_PROGRAM);
        }
        if (received.hasRemaining()) {
            if (ended) {
                throw new Unanswered(
                        listener + " closed the connection during the handshake, after " + received.position() + " of "
                                + BYTES + " bytes of an answer; it is no listener of Millrace's, or its process ended");
            }
            return false;
        }
        HandshakeReply reply = decode(received);
        if (reply != ACCEPTED) {
            throw new Refused(reply,
                    listener + " refused the connection: "
                            + (reply == null ? "for a reason of a later version's" : reply.text) + " (its version "
                            + HelloFormat.versionIn(received) + ", ours " + protocol.version() + ")");
        }
        return true;
    }
}
