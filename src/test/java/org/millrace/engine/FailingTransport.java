package org.millrace.engine;

import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/** A transport in which one phase of one end fails. The failure occurs before or after the phase has done its work. */
record FailingTransport(Transport transport, Phase phase, boolean afterwards, boolean onSender) implements Transport {

    enum Phase {
        PROXY_SETUP, SETUP, PROXY_CONNECT, CONNECT, PROXY_PROGRESS
    }

    /** The failure that this transport throws. */
    static final class Planted extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Planted(Phase phase) {
            super("planted in " + phase);
        }
    }

    @Override
    public String name() {
        return transport.name();
    }

    @Override
    public Availability offer() {
        return transport.offer();
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        return transport.canConnect(here, there);
    }

    @Override
    public TransportEnd send(EndRequest request) {
        TransportEnd end = transport.send(request);
        return onSender ? new End(end) : end;
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        TransportEnd end = transport.receive(request);
        return onSender ? end : new End(end);
    }

    private final class End implements TransportEnd {

        private final TransportEnd end;

        End(TransportEnd end) {
            this.end = end;
        }

        private void before(Phase now) {
            if (now == phase && !afterwards) {
                throw new Planted(phase);
            }
        }

        private void after(Phase now) {
            if (now == phase && afterwards) {
                throw new Planted(phase);
            }
        }

        @Override
        public void proxySetup() {
            before(Phase.PROXY_SETUP);
            end.proxySetup();
            after(Phase.PROXY_SETUP);
        }

        @Override
        public byte[] setup() {
            before(Phase.SETUP);
            byte[] said = end.setup();
            after(Phase.SETUP);
            return said;
        }

        @Override
        public boolean proxyConnect(byte[] peer) {
            before(Phase.PROXY_CONNECT);
            boolean connected = end.proxyConnect(peer);
            if (connected) {
                after(Phase.PROXY_CONNECT);
            }
            return connected;
        }

        @Override
        public boolean connect(byte[] peer) {
            before(Phase.CONNECT);
            boolean connected = end.connect(peer);
            after(Phase.CONNECT);
            return connected;
        }

        @Override
        public ConnectionInfo info() {
            return end.info();
        }

        @Override
        public void announce(ProxyOp op) {
            end.announce(op);
        }

        @Override
        public List<ProxyConnection> proxyProgress() {
            before(Phase.PROXY_PROGRESS);
            List<ProxyConnection> proxies = end.proxyProgress();
            after(Phase.PROXY_PROGRESS);
            return proxies;
        }

        @Override
        public void proxyFree() {
            end.proxyFree();
            end.proxyFree();
        }

        @Override
        public void free() {
            end.free();
            end.free();
        }
    }
}
