package org.millrace.transport;

import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;

/** This rank's end of one direction of one channel to one peer, ready for a device. */
public interface Connection extends AutoCloseable {

    /**
     * Which connection this is.
     *
     * @return its name, for messages
     */
    ConnectionName name();

    /**
     * What the data goes over.
     *
     * @return the transport's name and how this end uses it, as in {@code "P2P"}, {@code "SHM by copy"} or
     *         {@code "NET socket"}
     */
    String transport();

    /**
     * What the device needs.
     *
     * @return slots and counters
     */
    ConnectionInfo info();

    /**
     * Who moves the data.
     *
     * @return the proxies to be added to an agent; none where the devices reach each other's memory
     */
    List<ProxyConnection> proxies();

    /**
     * Announces an operation to the proxies, in the order in which the device will run them. Nothing to do where there
     * are none.
     *
     * @param op this connection's share of it
     */
    void announce(ProxyOp op);

    /** Frees what the connection holds, after its proxies have stopped. May be called twice. */
    @Override
    void close();
}
