package org.millrace.engine;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * A transport with which the set-up of rank 1 fails. The release of rank 1's other connections lasts until rank 1 sets
 * up its next communicator.
 */
public final class StuckTransport implements Transport {

    private static volatile boolean fails;
    private static volatile CountDownLatch again;

    /** Creates the transport for {@link java.util.ServiceLoader}. */
    public StuckTransport() {}

    /** Makes the connections of the next communicator fail. */
    static void failOnce() {
        again = new CountDownLatch(1);
        fails = true;
    }

    @Override
    public String name() {
        return "STUCK";
    }

    @Override
    public Availability offer() {
        return Availability.yes("");
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        if (here.rank() == 1 && !fails && again != null) {
            again.countDown();
        }
        return fails ? Availability.yes("") : Availability.no("no test lets it fail");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new End(request);
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new End(request);
    }

    private static final class End implements TransportEnd {

        private final boolean isOfRankOne;
        private boolean hasFailed;

        End(EndRequest request) {
            isOfRankOne = request.here().rank() == 1;
        }

        @Override
        public byte[] setup() {
            return new byte[0];
        }

        @Override
        public boolean connect(byte[] peer) {
            if (isOfRankOne) {
                hasFailed = true;
                fails = false;
                throw new IllegalStateException("planted in connect");
            }
            return false;
        }

        @Override
        public ConnectionInfo info() {
            throw new IllegalStateException("not connected");
        }

        @Override
        public void announce(ProxyOp op) {
            throw new IllegalStateException("not connected");
        }

        @Override
        public void free() {
            if (isOfRankOne && !hasFailed) {
                try {
                    again.await(30, TimeUnit.SECONDS);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }
}
