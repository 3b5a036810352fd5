package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.LostPeerException;
import org.millrace.net.PeerClosedException;

/** If an end with several rails closes because another process was lost, the end's message names that process. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RailLostPeerNameTest {

    private static final String LOST = "pid 4194304 on 255.255.255.255";

    @ParameterizedTest
    @CsvSource({"sender, close, true", "sender, abort, true", "receiver, close, true", "sender, close, false",
            "receiver, close, false"})
    void thePeerLearnsWhoWasLost(String leaver, String how, boolean blames) {
        SocketOptions rails = SocketOptions.defaults()
                .withRails(List.of(InetAddress.ofLiteral("127.0.0.1"), InetAddress.ofLiteral("127.0.0.2")));
        try (SocketNetwork network = new SocketNetwork(rails); Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().toString().contains("(2 rails)"), ends.sender().toString());
            assertTrue(ends.sender().offer(new FrameHeader(), null, 0));
            ends.nextHeader();
            ends.receiver().accept(null, 0);
            ends.until(() -> ends.sender().framesCompleted() == 1);
            if (blames && leaver.equals("sender")) {
                ends.sender().blame(LOST);
            } else if (blames) {
                ends.receiver().blame(LOST);
            }
            if (how.equals("abort")) {
                ends.sender().abort();
            } else if (leaver.equals("sender")) {
                ends.sender().close();
            } else {
                ends.receiver().close();
            }
            ConnectionException end = Connected
                    .failureOf(leaver.equals("sender") ? () -> ends.receiver().poll() : () -> ends.sender().progress());
            if (blames) {
                assertEquals(LOST, assertInstanceOf(LostPeerException.class, end, end.getMessage()).lostPeer());
            } else {
                assertEquals(PeerClosedException.class, end.getClass(), end.getMessage());
            }
        }
    }
}
