package org.millrace.plugin;

import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.LastWordsException;
import org.millrace.net.PeerClosedException;

/**
 * This process's end of a lost connection.
 *
 * @param peer     the lost process
 * @param toldBy   process at the connection's other end, if it reported the loss; null if this process itself lost the
 *                 peer
 * @param text     description of the connection, the event and the last observed state
 * @param orderly  whether the peer closed the connection on purpose; false if it was killed or its host is gone
 * @param owesData whether the device has posted data that the peer has not received. It reads the connection's memory
 * @param release  ends the waits of kernels, if possible, before the process ends. It is called repeatedly
 */
record LostEnd(String peer, @Nullable String toldBy, String text, boolean orderly, BooleanSupplier owesData,
        Runnable release) {

    private static final String GIN = "GIN";

    /** Creates an end for kernels with waits that cannot be ended. */
    public LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData) {
        this(peer, null, text, orderly, owesData, () -> {});
    }

    /**
     * Creates an end from the failure that stopped its thread. If the peer at the other end reports that it lost this
     * process, that peer counts as the lost one.
     *
     * @param other the process at the other end
     */
    public static LostEnd of(Throwable reason, String other, String text, BooleanSupplier owesData) {
        return reason instanceof LastWordsException words && !isThisProcess(words.lostPeer())
                ? new LostEnd(words.lostPeer(), other, text, false, owesData, () -> {})
                : new LostEnd(other, text, reason instanceof PeerClosedException, owesData);
    }

    /** Creates an end for all connections of a communicator's GIN. The first failure makes all of them unusable. */
    public static LostEnd ofGin(String text, BooleanSupplier owesData, Runnable release) {
        return new LostEnd(GIN, null, text, false, owesData, release);
    }

    /**
     * Returns whether a name means this process. Other processes with this pid are on other hosts. The name identifies
     * a host by its host name, or by any of its addresses.
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
     * Returns the lost process to report to a receiver. If the receiver itself is the lost process, this is the process
     * that reported the loss.
     */
    String namedTo(String receiver) {
        return toldBy != null && peer.equals(receiver) ? toldBy : peer;
    }

    String line() {
        return peer.equals(GIN) ? "GIN has failed, and kernels wait for what never comes: " + text
                : "lost the peer " + peer + ", which this process waits for: " + text;
    }
}
