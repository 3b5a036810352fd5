package org.millrace.net.connection;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Open resources of a network. The resources are closed with the network. Memory and connections belong to the same
 * network if they have the same instance of this class. Safe from any thread.
 */
public final class OpenResources {

    private final String network;
    private final Map<Object, Runnable> open = new ConcurrentHashMap<>();
    private volatile boolean lostPeer;
    private volatile boolean closed;

    /** Creates an empty set. The network's name appears in messages. */
    public OpenResources(String network) {
        this.network = network;
    }

    public void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the " + network + " was closed");
        }
    }

    /** Adds a resource, and the action that closes the resource when the network is closed. */
    public void opened(Object what, Runnable close) {
        open.put(what, close);
        if (closed) {
            // Another thread is closing the network. That thread's loop over the resources may have missed the new
            // resource.
            close.run();
            checkOpen();
        }
    }

    public void forget(Object what) {
        open.remove(what);
    }

    /** Records that a peer was killed, because it may have left files in shared memory. */
    public void peerWasLost() {
        lostPeer = true;
    }

    public boolean hasLostPeer() {
        return lostPeer;
    }

    public void close() {
        closed = true;
        RuntimeException first = null;
        for (Runnable close : open.values()) {
            try {
                close.run();
            } catch (RuntimeException e) {
                // A failure does not prevent the close of the other resources.
                if (first == null) {
                    first = e;
                } else if (first != e) {
                    first.addSuppressed(e);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
