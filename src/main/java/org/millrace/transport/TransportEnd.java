package org.millrace.transport;

import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;

/**
 * One end of a connection. It passes through the phases of NCCL's connections ({@code ncclTransportComm}).
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
 * The phases of the proxy are for an end with a thread that moves its data. An end with a device that accesses the
 * peer's memory has none of them. None of the methods blocks until the peer acts. If a method throws an exception,
 * {@link #proxyFree} and {@link #free} are called in any phase.
 */
public interface TransportEnd {

    /** Maximum length of the message of {@link #setup}, in bytes. NCCL's {@code ncclConnect} has 256 bytes. */
    int MAX_SETUP_BYTES = 1024;

    /** Allocates the resources that the proxy needs before the peer is known. */
    default void proxySetup() {
        // no proxy
    }

    /**
     * {@return the message to the peer, of 0 to {@link #MAX_SETUP_BYTES} bytes} The method also allocates the resources
     * that this end needs before the peer is known.
     */
    byte[] setup();

    /**
     * Continues to connect the proxy with its peer. Called repeatedly until it returns true.
     *
     * @param peer message of the peer's {@link #setup}, untrusted bytes of another process
     * @return whether the proxy is connected
     */
    default boolean proxyConnect(byte[] peer) {
        return true;
    }

    /**
     * Continues to connect this end, after the proxy is connected. Called repeatedly until it returns true.
     *
     * @return whether this end is connected
     */
    boolean connect(byte[] peer);

    /** {@return the slots and counters that the device needs; called once the end is connected} */
    ConnectionInfo info();

    /**
     * {@return this end's method of moving data: words that follow the transport's name, as in {@code "by copy"}; empty
     * if there is only one method}
     */
    default String way() {
        return "";
    }

    /**
     * {@return whether the peer's device wakes this rank after it has done something; this rank polls while at least
     * one peer does not}
     */
    default boolean wakesThisRank() {
        return false;
    }

    /** Announces an operation before the device runs it, in the order of the device's operations. */
    void announce(ProxyOp op);

    /**
     * Returns the proxies that move the data. An agent's thread calls their progress ({@code proxyProgress} in NCCL).
     * Called once the end is connected.
     *
     * @return the proxies, which belong to the end until an agent takes them over; empty if the devices access each
     *         other's memory
     */
    default List<ProxyConnection> proxyProgress() {
        return List.of();
    }

    /**
     * Frees the resources of the proxy, after it has stopped or before it ever ran. May be called twice, and after any
     * phase.
     */
    default void proxyFree() {
        // no proxy
    }

    /**
     * Frees the resources of the end, after its device and its proxy have stopped. May be called twice, and after any
     * phase.
     */
    void free();
}
