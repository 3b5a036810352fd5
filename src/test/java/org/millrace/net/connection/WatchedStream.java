package org.millrace.net.connection;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A stream of this process that is watched, and of which the kernel may say that nothing comes. */
public record WatchedStream(TcpStream stream) {

    /** All whose own address is this one. */
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

    /** Nothing comes on it for a minute. */
    public void silence() {
        try (Arena arena = Arena.ofConfined()) {
            TcpInfo info = new TcpInfo(arena);
            info.bytes.set(ValueLayout.JAVA_INT, TcpInfo.SEGMENTS_IN_OFFSET, 1);
            stream.update(info, 0);
            stream.update(info, TimeUnit.MINUTES.toNanos(1));
        }
    }
}
