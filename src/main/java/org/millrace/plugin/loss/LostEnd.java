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
 * @param peer     name of the lost process
 * @param toldBy   name of the process at the connection's other end, which reported the loss of a third process; null
 *                 if this process itself detected the loss
 * @param text     description of the connection, the event and the last observed state
 * @param orderly  whether the peer closed the connection on purpose; false if it was killed or its host is gone
 * @param owesData function that reads from the connection's memory whether the device has posted data that the peer has
 *                 not received
 * @param release  action that ends the waits of kernels, if possible, before the process ends; run repeatedly
 */
public record LostEnd(String peer, @Nullable String toldBy, String text, boolean orderly, BooleanSupplier owesData,
        Runnable release) {

    private static final String GIN = "GIN";

    /**
     * Creates the object without an action that ends the waits of kernels. Used if the waits of the kernels cannot be
     * ended.
     */
    public LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData) {
        this(peer, null, text, orderly, owesData, () -> {});
    }

    /**
     * Creates this process's end of a connection from the failure that stopped the connection. If {@code other} reports
     * the loss of a third process, this third process is the lost peer. In all other cases {@code other} is the lost
     * peer, even if it reports the loss of this process.
     *
     * @param other name of the process at the other end
     */
    public static LostEnd of(Throwable reason, String other, String text, BooleanSupplier owesData) {
        return reason instanceof LostPeerException words && !isThisProcess(words.lostPeer())
                ? new LostEnd(words.lostPeer(), other, text, false, owesData, () -> {})
                : new LostEnd(other, text, reason instanceof PeerClosedException, owesData);
    }

    /**
     * Creates one object for all GIN connections of a communicator, because the first failure makes all of them
     * unusable.
     */
    public static LostEnd ofGin(String text, BooleanSupplier owesData, Runnable release) {
        return new LostEnd(GIN, null, text, false, owesData, release);
    }

    /**
     * Returns whether a peer's name stands for this process. A process on another host may have the same pid, so the
     * host is compared too. The name contains the host's name or one of its addresses.
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
     * Returns the name of the lost process for a message to {@code receiver}. If the receiver is the lost process,
     * returns the process that reported the loss.
     */
    public String namedTo(String receiver) {
        return toldBy != null && peer.equals(receiver) ? toldBy : peer;
    }

    String line() {
        return peer.equals(GIN) ? "GIN has failed, and kernels wait forever: " + text
                : "lost the peer " + peer + ", which this process waits for: " + text;
    }
}
