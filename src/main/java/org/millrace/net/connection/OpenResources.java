package org.millrace.net.connection;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a network has open: it is closed with the network. Memory and connections belong together if they have the same
 * one of these. Safe from any thread.
 */
public final class OpenResources {

    private final String network;
    private final Map<Object, Runnable> open = new ConcurrentHashMap<>();
    private volatile boolean lostPeer;
    private volatile boolean closed;

    /** Nothing is open yet; the name is for messages. */
    public OpenResources(String network) {
        this.network = network;
    }

    public void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the " + network + " was closed");
        }
    }

    /** Notes what is to be closed with the network, and how. */
    public void opened(Object what, Runnable close) {
        open.put(what, close);
        if (closed) {
            // The network was closed meanwhile, and may have missed it.
            close.run();
            checkOpen();
        }
    }

    /** Notes that something was closed. */
    public void forget(Object what) {
        open.remove(what);
    }

    /** Notes that a peer was killed, and may have left something behind. */
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
