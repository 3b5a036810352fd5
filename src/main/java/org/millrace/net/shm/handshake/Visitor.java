package org.millrace.net.shm.handshake;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import org.millrace.net.shm.ring.RingLayout;
import org.millrace.net.shm.ring.ShmConnection;

/** One who connected to a listener's socket, until it is known which connection it is for. Guarded by its listener. */
final class Visitor {

    /** Why a visitor is sent away. */
    static final class Unwelcome extends Exception {
        private static final long serialVersionUID = 1L;
        private final ShmHandshakeReply answer;

        /**
         * A reason.
         *
         * @param answer  what the visitor is told; null to tell it nothing, as it is no peer of ours
         * @param message what the visitor did, for the log
         */
        Unwelcome(ShmHandshakeReply answer, String message) {
            super(message, null, false, false);
            this.answer = answer;
        }
    }

    private final SocketChannel socket;
    private final long deadline;
    private final ByteBuffer bytes = ByteBuffer.allocate(RingHello.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private RingHello hello;

    Visitor(SocketChannel socket, long deadline) {
        this.socket = socket;
        this.deadline = deadline;
    }

    /** Reads what has come of the hello; when it is whole, checks that it is a peer's. */
    void read(byte[] secret) throws Unwelcome {
        if (hello != null) {
            checkStillThere();
            return;
        }
        try {
            if (socket.read(bytes) < 0) {
                throw new Unwelcome(null, "it left before it had said who it is");
            }
        } catch (IOException e) {
            throw new Unwelcome(null, "it is gone: " + e.getMessage());
        }
        if (bytes.hasRemaining()) {
            return;
        }
        if (!RingHello.hasMagic(bytes)) {
            throw new Unwelcome(null, "it does not speak this protocol");
        }
        RingHello said = RingHello.decode(bytes);
        if (said.version() != RingLayout.VERSION) {
            throw new Unwelcome(ShmHandshakeReply.OTHER_VERSION,
                    "it speaks version " + said.version() + ", this side version " + RingLayout.VERSION);
        }
        // In constant time: how much of a guess was right must not show.
        if (!MessageDigest.isEqual(said.secret(), secret)) {
            throw new Unwelcome(ShmHandshakeReply.WRONG_SECRET, "it does not know this listener's secret");
        }
        hello = said;
        checkStillThere();
    }

    /** A peer that waits for its answer says nothing more. */
    private void checkStillThere() throws Unwelcome {
        try {
            int read = socket.read(ByteBuffer.allocate(1));
            if (read != 0) {
                throw new Unwelcome(null, read < 0 ? "it left before it was accepted" : "it said more than a hello");
            }
        } catch (IOException e) {
            throw new Unwelcome(null, "it is gone: " + e.getMessage());
        }
    }

    /** What it said; null while it has not said all. */
    RingHello hello() {
        return hello;
    }

    boolean isLate(long now) {
        return now - deadline > 0;
    }

    SocketChannel socket() {
        return socket;
    }

    void answer(ShmHandshakeReply answer) throws IOException {
        socket.write(answer.encode());
    }

    /** Sends it away. */
    void refuse(Unwelcome why) {
        try {
            if (why.answer != null) {
                answer(why.answer);
            }
        } catch (IOException gone) {
            // It left before it was answered.
        }
        ShmConnection.closeQuietly(socket);
    }
}
