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
 * This process's end of a connection that was lost.
 *
 * @param peer     the process that is lost
 * @param toldBy   the process at the other end, if that has lost the peer; null if this process itself has
 * @param text     which connection, what happened to it, and what was last seen of it
 * @param orderly  whether the peer ended the connection on purpose; false if it was killed, or its host is gone
 * @param owesData whether the device has posted data that the peer has not got: looks at the connection's memory
 * @param release  ends the waits of kernels, if that is possible, before the process ends; called again and again
 */
record LostEnd(String peer, @Nullable String toldBy, String text, boolean orderly, BooleanSupplier owesData,
        Runnable release) {

    private static final String GIN = "GIN";

    /** A connection whose kernels' waits nobody can end. */
    public LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData) {
        this(peer, null, text, orderly, owesData, () -> {});
    }

    /**
     * The same, by what its thread has stopped for. Where the other end has lost this very process, the other end is
     * what is lost.
     *
     * @param other the process at the other end
     */
    public static LostEnd of(Throwable reason, String other, String text, BooleanSupplier owesData) {
        return reason instanceof LastWordsException words && !isThisProcess(words.lostPeer())
                ? new LostEnd(words.lostPeer(), other, text, false, owesData, () -> {})
                : new LostEnd(other, text, reason instanceof PeerClosedException, owesData);
    }

    /** All connections of a communicator's GIN: the first failure poisons it. */
    public static LostEnd ofGin(String text, BooleanSupplier owesData, Runnable release) {
        return new LostEnd(GIN, null, text, false, owesData, release);
    }

    /** Other processes of this pid are on other hosts. A host is named by its name, or by any of its addresses. */
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

    /** The process that another one is told to be lost: itself is none. Who has lost it is, for it. */
    String namedTo(String receiver) {
        return toldBy != null && peer.equals(receiver) ? toldBy : peer;
    }

    String line() {
        return peer.equals(GIN) ? "GIN has failed, and kernels wait for what never comes: " + text
                : "lost the peer " + peer + ", which this process waits for: " + text;
    }
}
