package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;

class FullMeshTest {

    private static final Duration DEADLINE = Duration.ofMillis(2);
    private static final String CAUSE = "the peer has another secret";

    /**
     * A connection attempt with a deadline that passes during the first call of {@code poll}. The second call throws an
     * exception with the reason.
     */
    private static final class Hopeless<T> implements Pending<T> {

        private final long end = System.nanoTime() + DEADLINE.toNanos();

        @Override
        public T poll() {
            if (end - System.nanoTime() <= 0) {
                throw new ConnectionException(CAUSE);
            }
            while (end + DEADLINE.toNanos() - System.nanoTime() > 0) {
                Thread.onSpinWait();
            }
            return null;
        }

        @Override
        public void close() {
            // There is no connection to close.
        }
    }

    /** A peer that never connects. */
    private static final class Missing implements Pending<FrameReceiver> {

        @Override
        public FrameReceiver poll() {
            return null;
        }

        @Override
        public void close() {
            // There is no connection to close.
        }
    }

    private static <T> T answering(Class<T> type, Supplier<Pending<?>> answer) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> answer.get()));
    }

    /**
     * The mesh and its connections have the same deadline, and the mesh detects first that the deadline has passed. The
     * exception of the mesh still contains the reason that the connection reports.
     */
    @Test
    void whyThereIsNoConnectionIsSaidAtTheDeadline() {
        Network network = answering(Network.class, Hopeless<FrameSender>::new);
        Listener listener = answering(Listener.class, Missing::new);
        ConnectionException failed = assertThrows(ConnectionException.class,
                () -> FullMesh.connect(network, listener, new byte[2][], 0, 1, 0, DEADLINE, () -> null));
        assertTrue(failed.getMessage().contains(CAUSE), failed::getMessage);
    }
}
