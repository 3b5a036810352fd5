package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.millrace.net.ConnectionException;

/** Asks a listener for all its addresses, on a stream of its own. */
final class RailQuery {

    private final OutgoingStream stream;
    private final ByteBuffer received = ByteBuffer.allocate(RailList.BYTES).order(ByteOrder.LITTLE_ENDIAN);

    RailQuery(OutgoingStream stream) {
        this.stream = stream;
    }

    /** Goes on; null until the answer is here. */
    List<InetSocketAddress> poll() {
        if (!stream.advance()) {
            return null;
        }
        try {
            int read = stream.channel().read(received);
            if (!received.hasRemaining()) {
                close();
                return RailList.decode(received);
            }
            if (read < 0) {
                throw new ConnectionException("the listener closed the connection after " + received.position() + " of "
                        + RailList.BYTES + " bytes of its addresses; its process ended");
            }
            return null;
        } catch (IOException e) {
            throw new ConnectionException(
                    "the listener broke the connection while it was asked for its addresses: " + e.getMessage(), e);
        }
    }

    String waitingFor() {
        return stream.isAccepted() ? "the listener's addresses" : stream.waitingFor();
    }

    void close() {
        stream.close();
    }
}
