package org.millrace.net.connection;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Open resources of a network, which are closed with it. Memory and connections belong to the same network if they have
 * the same instance. Safe from any thread.
 */
public final class OpenResources {

    private final String network;
    private final Map<Object, Runnable> open = new ConcurrentHashMap<>();
    private volatile boolean lostPeer;
    private volatile boolean closed;

    /** Creates an empty set. The name is for messages. */
    public OpenResources(String network) {
        this.network = network;
    }

    public void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the " + network + " was closed");
        }
    }

    /** Adds a resource, and the action that closes it with the network. */
    public void opened(Object what, Runnable close) {
        open.put(what, close);
        if (closed) {
            // The network was closed meanwhile, and may have missed the resource.
            close.run();
            checkOpen();
        }
    }

    /** Removes a closed resource. */
    public void forget(Object what) {
        open.remove(what);
    }

    /** Records that a peer was killed, and may have left files behind. */
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
            } catch (RuntimeException e) { // the others are closed all the same
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
