package org.millrace.net.auto;

import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.shm.file.ShmUnavailableException;

/** A connection in the making: over shared memory as long as that may work, over TCP from then on. */
final class Connecting implements Pending<FrameSender> {

    private final AutoNetwork network;
    private final AutoAddress address;
    private final ConnectionKey key;
    private Pending<FrameSender> current;
    private boolean overShm;
    private boolean closed;

    Connecting(AutoNetwork network, AutoAddress address, ConnectionKey key) {
        this.network = network;
        this.address = address;
        this.key = key;
        if (address.isOnThisHost()) {
            try {
                current = network.shm().connect(address.shm().encode(), key);
                overShm = true;
                return;
            } catch (ShmUnavailableException e) {
                network.noSharedMemory(e);
            }
        }
        current = network.socket().connect(address.socket(), key);
    }

    @Override
    public synchronized FrameSender poll() {
        try {
            FrameSender sender = current.poll();
            return sender == null ? null : new AutoSender(sender, overShm);
        } catch (ShmUnavailableException e) {
            if (closed) {
                throw e;
            }
            network.noSharedMemory(e);
            overShm = false;
            try {
                current = network.socket().connect(address.socket(), key);
            } catch (ConnectionException neither) {
                neither.addSuppressed(e);
                throw neither;
            }
            return null;
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        current.close();
    }

    @Override
    public String toString() {
        return current.toString();
    }
}
