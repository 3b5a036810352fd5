package org.millrace.net.socket.stripes;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import org.millrace.net.socket.stream.HeaderFormat;

/** Listens, on the sending side, for the one thing that a receiver ever says: goodbye. */
final class GoodbyeWatch {

    /** What is known of the peer. */
    enum Peer {
        THERE, SAID_GOODBYE, GONE, TALKS_NONSENSE
    }

    private final ByteBuffer buffer = ByteBuffer.allocateDirect(HeaderFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);

    /** Reads once what has come from the peer. */
    Peer look(SocketChannel channel) throws IOException {
        int read = channel.read(buffer);
        if (!buffer.hasRemaining()) {
            return HeaderFormat.isGoodbye(buffer, 0) ? Peer.SAID_GOODBYE : Peer.TALKS_NONSENSE;
        }
        return read < 0 ? Peer.GONE : Peer.THERE;
    }

    /** What the nonsense was. */
    String problem() {
        return HeaderFormat.isData(buffer, 0) ? "a receiver sends no data, but its header came"
                : HeaderFormat.problem(HeaderFormat.TYPE_DATA, buffer, 0);
    }
}
