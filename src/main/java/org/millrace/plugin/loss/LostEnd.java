package org.millrace.plugin.loss;

import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.LostPeerException;
import org.millrace.net.PeerClosedException;

/**
 * This process's end of a lost connection.
 *
 * @param peer     the lost process
 * @param toldBy   process at the connection's other end, if it reported the loss; null if this process itself lost the
 *                 peer
 * @param text     description of the connection, the event and the last observed state
 * @param orderly  whether the peer closed the connection on purpose; false if it was killed or its host is gone
 * @param owesData whether the device has posted data that the peer has not received. The check reads the connection's
 *                 memory
 * @param release  action that ends the waits of kernels, if possible, before the process ends. It is run repeatedly
 */
public record LostEnd(String peer, @Nullable String toldBy, String text, boolean orderly, BooleanSupplier owesData,
        Runnable release) {

    private static final String GIN = "GIN";

    /** Creates an end without an action for kernels, because their waits cannot be ended. */
    public LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData) {
        this(peer, null, text, orderly, owesData, () -> {});
    }

    /**
     * Creates an end from the failure that stopped the connection. If the process at the other end reports the loss of
     * a third process, the third process is the lost peer. If the process at the other end reports the loss of this
     * process, the process at the other end is the lost peer.
     *
     * @param other the process at the other end
     */
    public static LostEnd of(Throwable reason, String other, String text, BooleanSupplier owesData) {
        return reason instanceof LostPeerException words && !isThisProcess(words.lostPeer())
                ? new LostEnd(words.lostPeer(), other, text, false, owesData, () -> {})
                : new LostEnd(other, text, reason instanceof PeerClosedException, owesData);
    }

    /** Creates an end for all GIN connections of a communicator. The first failure makes all of them unusable. */
    public static LostEnd ofGin(String text, BooleanSupplier owesData, Runnable release) {
        return new LostEnd(GIN, null, text, false, owesData, release);
    }

    /**
     * Returns whether a peer's name stands for this process. A process on another host may have the same pid, so the
     * host is compared too. The name identifies a host by its host name, or by any of its addresses.
     */
    private static boolean isThisProcess(String name) {
        String begin = "pid " + ProcessHandle.current().pid() + " on ";
        if (!name.startsWith(begin)) {
            return false;
        }
        String host = name.substring(begin.length());
        try {
            return host.equals(ProcessIdentity.HOST) || (host.indexOf(':') >= 0 || host.matches("[0-9.]+"))
                    && NetworkInterface.getByInetAddress(InetAddress.getByName(host)) != null;
        } catch (IOException unknown) {
            return false;
        }
    }

    /**
     * Returns the process to report as lost to a receiver. If the receiver itself is the lost process, this is the
     * process that reported the loss.
     */
    public String namedTo(String receiver) {
        return toldBy != null && peer.equals(receiver) ? toldBy : peer;
    }

    String line() {
        return peer.equals(GIN) ? "GIN has failed, and kernels wait forever: " + text
                : "lost the peer " + peer + ", which this process waits for: " + text;
    }
}
