package org.millrace.bench.frames;

import java.time.Duration;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * A connection of a network, both ends in this process.
 *
 * @param sender   one end
 * @param receiver the other
 */
public record FramePipe(FrameSender sender, FrameReceiver receiver) implements AutoCloseable {

    private static final Duration DEADLINE = Duration.ofSeconds(20);

    /**
     * Connects.
     *
     * @param network network to use
     * @return the connection
     */
    public static FramePipe open(Network network) {
        try (Listener listener = network.listen();
                Pending<FrameReceiver> expected = listener.expect(new ConnectionKey(1, 1));
                Pending<FrameSender> connecting = network.connect(listener.address(), new ConnectionKey(1, 1))) {
            FrameSender sender = null;
            FrameReceiver receiver = null;
            long begin = System.nanoTime();
            while (sender == null || receiver == null) {
                sender = sender == null ? connecting.poll() : sender;
                receiver = receiver == null ? expected.poll() : receiver;
                if (System.nanoTime() - begin > DEADLINE.toNanos()) {
                    throw new IllegalStateException(
                            "no connection over " + network.name() + " within " + DEADLINE.toSeconds() + " s");
                }
            }
            return new FramePipe(sender, receiver);
        }
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
    }
}
