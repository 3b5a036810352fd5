package org.millrace.transport;

import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;

/**
 * One end of one connection, in the phases in which NCCL makes one ({@code ncclTransportComm}):
 *
 * <pre>
 *   this rank                                the other rank
 *   proxySetup, setup  ── what setup said ─▶
 *                      ◀─ what setup said ──  proxySetup, setup
 *   proxyConnect, connect                    proxyConnect, connect
 *   info, proxyProgress: the connection is used
 *   proxyFree, free                          proxyFree, free
 * </pre>
 *
 * The phases of the proxy are for an end whose data a thread moves; an end whose device reaches the other's memory has
 * none of them. None of the methods waits for the other end. If one throws, {@link #proxyFree} and {@link #free}
 * follow, whatever had been reached.
 */
public interface TransportEnd {

    /** Longest message of {@link #setup}. NCCL's {@code ncclConnect} has 256 bytes. */
    int MAX_SETUP_BYTES = 1024;

    /** Takes what the proxy needs before the other end is known. */
    default void proxySetup() {
        // no proxy
    }

    /**
     * {@return what the other end needs to know, 0 to {@link #MAX_SETUP_BYTES} bytes; takes what this end needs before
     * the other is known}
     */
    byte[] setup();

    /**
     * Goes on to connect the proxy with its peer; called again and again.
     *
     * @param peer what the other end's {@link #setup} said, bytes of another process
     */
    default boolean proxyConnect(byte[] peer) {
        return true;
    }

    /** Goes on to connect, after the proxy is connected; called again and again. */
    boolean connect(byte[] peer);

    /** {@return the slots and counters that the device needs; called once the end is connected} */
    ConnectionInfo info();

    /**
     * {@return how this end moves data: words behind the transport's name, as in {@code "by copy"}; empty if there is
     * one way only}
     */
    default String way() {
        return "";
    }

    /**
     * {@return whether the other end's device wakes this rank when it has done something; while one does not, the rank
     * polls}
     */
    default boolean wakesThisRank() {
        return false;
    }

    /** Hears of an operation before the device runs it, in the order in which it will. */
    void announce(ProxyOp op);

    /**
     * Who moves the data: what an agent's thread asks for progress ({@code proxyProgress} in NCCL). Called once the end
     * is connected.
     *
     * @return the proxies, the end's own until an agent takes them over; none where the devices reach each other's
     *         memory
     */
    default List<ProxyConnection> proxyProgress() {
        return List.of();
    }

    /**
     * Frees what the proxy holds, after it has stopped or before it ever ran. May be called twice, and after any phase.
     */
    default void proxyFree() {
        // no proxy
    }

    /**
     * Frees what the end holds, after its device and its proxy have stopped. May be called twice, and after any phase.
     */
    void free();
}
