package org.millrace.net.connection;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A watched stream of this process. A test can make it appear silent. */
public record WatchedStream(TcpStream stream) {

    /** Returns all streams with this local address. */
    public static List<WatchedStream> at(String address) {
        return TcpStreams.open()
                .stream()
                .filter(each -> each.local.getAddress().getHostAddress().equals(address))
                .map(WatchedStream::new)
                .toList();
    }

    public boolean isOpen() {
        return stream.isOpen();
    }

    /** Makes the stream appear silent for a minute. */
    public void silence() {
        try (Arena arena = Arena.ofConfined()) {
            TcpInfo info = new TcpInfo(arena);
            info.bytes.set(ValueLayout.JAVA_INT, TcpInfo.SEGMENTS_IN_OFFSET, 1);
            stream.update(info, 0);
            stream.update(info, TimeUnit.MINUTES.toNanos(1));
        }
    }
}
