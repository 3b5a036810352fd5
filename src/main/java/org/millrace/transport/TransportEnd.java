package org.millrace.transport;

import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;

/**
 * One end of a connection. An end passes through the phases of NCCL's connections ({@code ncclTransportComm}).
 *
 * <pre>
 *   this rank                                the other rank
 *   proxySetup, setup  ── setup message ───▶
 *                      ◀── setup message ───  proxySetup, setup
 *   proxyConnect, connect                    proxyConnect, connect
 *   info, proxyProgress: the connection is used
 *   proxyFree, free                          proxyFree, free
 * </pre>
 *
 * Only an end with a proxy implements the methods with names that begin with {@code proxy}. If the device accesses the
 * peer's memory itself, the end has no proxy. No method blocks until the peer acts. If a method of any phase throws an
 * exception, {@link #proxyFree} and {@link #free} are called.
 */
public interface TransportEnd {

    /** Maximum length of the message of {@link #setup}, in bytes. NCCL's {@code ncclConnect} has 256 bytes. */
    int MAX_SETUP_BYTES = 1024;

    /** Allocates the resources that the proxy needs before the peer is known. */
    default void proxySetup() {
        // By default, the proxy needs no such resources: the end has no proxy, or the peer's end allocates them.
    }

    /**
     * {@return the message to the peer, of 0 to {@link #MAX_SETUP_BYTES} bytes} The method also allocates the resources
     * that this end needs before the peer is known.
     */
    byte[] setup();

    /**
     * Continues to connect the proxy with its peer. The caller repeats the call until the result is true.
     *
     * @param peer message of the peer's {@link #setup}, untrusted bytes of another process
     * @return whether the proxy is connected
     */
    default boolean proxyConnect(byte[] peer) {
        return true;
    }

    /**
     * Continues to connect this end, after the proxy is connected. The caller repeats the call until the result is
     * true.
     *
     * @param peer message of the peer's {@link #setup}, untrusted bytes of another process
     * @return whether this end is connected
     */
    boolean connect(byte[] peer);

    /** {@return the slots and counters that the device needs} Called after the end was connected. */
    ConnectionInfo info();

    /**
     * {@return a text that names this end's way to move data, for instance {@code "by copy"}; empty if the transport
     * has only one way} Messages append it to the transport's name.
     */
    default String way() {
        return "";
    }

    /**
     * {@return whether the peer's device wakes this rank after each action of that device} This rank polls while the
     * result is false for at least one peer.
     */
    default boolean wakesThisRank() {
        return false;
    }

    /**
     * Announces an operation to the proxy, before the device runs it. Operations are announced in the device's order.
     */
    void announce(ProxyOp op);

    /**
     * Returns the proxies that move this end's data. An agent's thread calls the progress methods of the proxies
     * ({@code proxyProgress} in NCCL). Called after this end was connected.
     *
     * @return the proxies, which belong to the end until an agent takes them over; empty if the devices access each
     *         other's memory
     */
    default List<ProxyConnection> proxyProgress() {
        return List.of();
    }

    /**
     * Frees the resources of the proxy. Called in any phase, after the proxy has stopped or if the proxy never ran. May
     * be called twice.
     */
    default void proxyFree() {
        // By default, an end has no resources of a proxy, or frees them in free().
    }

    /**
     * Frees the resources of the end. Called after its device and its proxy have stopped, in any phase. May be called
     * twice.
     */
    void free();
}
