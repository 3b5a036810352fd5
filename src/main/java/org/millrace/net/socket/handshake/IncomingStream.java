package org.millrace.net.socket.handshake;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.IncomingHello;
import org.millrace.net.socket.rails.Rail;

/** One TCP stream that a client opened to a listener, until it is part of a connection. */
final class IncomingStream extends IncomingHello {

    private @Nullable StreamHello hello;

    IncomingStream(SocketChannel channel, long deadline) throws IOException {
        super(channel, StreamHello.FORMAT, channel.getRemoteAddress().toString().replaceFirst("^/", ""), deadline);
    }

    @Override
    protected void decode(ByteBuffer bytes) throws Refusal {
        StreamHello said = StreamHello.decode(bytes);
        if (!said.isPlausible()) {
            throw new Refusal(HandshakeReply.MALFORMED,
                    "it says that it is stream " + said.stream() + " of " + said.streams()
                            + " with a stripe threshold of " + said.threshold() + ", on rail " + said.rail() + " of "
                            + said.rails() + ", with a window of " + said.window() + " frames");
        }
        hello = said;
    }

    /** What it said; its hello must be here. */
    StreamHello hello() {
        return Objects.requireNonNull(hello);
    }

    /** Tells the listener's addresses: they fit, as the reply before them does. */
    void tell(List<InetSocketAddress> addresses) throws IOException {
        reply(HandshakeReply.ACCEPTED);
        channel().write(AddressFormat.encodeList(addresses));
    }

    /** The rail that this stream is of. */
    Rail rail() throws IOException {
        InetSocketAddress local = (InetSocketAddress) channel().getLocalAddress();
        return new Rail(hello().rail(), this + " to " + local.getAddress().getHostAddress());
    }
}
