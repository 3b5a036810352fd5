package org.millrace.engine;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.millrace.device.Port;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.trace.ProcessTrace;

/**
 * Traces of connections between devices that access each other's memory. No proxy traces such a connection. A thread of
 * the process's trace therefore reads the counters of the devices' ports ten times a second.
 */
final class DirectTraces implements AutoCloseable {

    private record Traced(Port port, ConnectionTrace trace) {

        void look() {
            trace.reached(port.step());
        }
    }

    private final @Nullable ProcessTrace process = ProcessTrace.current();
    private final long communicator;
    private final List<Traced> ports = new CopyOnWriteArrayList<>();
    private final Runnable watcher = () -> ports.forEach(Traced::look);

    /** @param communicator number of the communicator */
    DirectTraces(long communicator) {
        this.communicator = communicator;
        if (process != null) {
            process.watch(watcher);
        }
    }

    /**
     * @param kind    0 for collectives, 1 for sends and receives
     * @param network transport of the connection's data
     */
    void add(ConnectionName name, int channel, int kind, boolean sends, String network, Port port) {
        ConnectionTrace trace = process == null ? null
                : process.connection(new ConnectionIdentity(communicator, name.selfRank(), name.peerRank(), channel,
                        sends ? Direction.SEND : Direction.RECEIVE, kind, 0, 0, -1, port.step(), network,
                        "rank " + name.peerRank(), name.toString()));
        if (trace != null) {
            trace.servedWithoutAgent();
            ports.add(new Traced(port, trace));
        }
    }

    @Override
    public void close() {
        if (process != null) {
            process.unwatch(watcher);
        }
        ports.forEach(each -> each.trace.close());
        ports.clear();
    }
}
