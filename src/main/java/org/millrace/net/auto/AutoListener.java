package org.millrace.net.auto;

import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.Pending;

/** A listener of each network. */
final class AutoListener implements Listener {

    private final byte[] address;
    private final Listener socket;
    /** Null where there is no shared memory. */
    private final Listener shm;

    AutoListener(byte[] address, Listener socket, Listener shm) {
        this.address = address;
        this.socket = socket;
        this.shm = shm;
    }

    @Override
    public byte[] address() {
        return address.clone();
    }

    @Override
    public Pending<FrameReceiver> expect(ConnectionKey key) {
        Pending<FrameReceiver> overSocket = socket.expect(key);
        return new ExpectedAnywhere(shm == null ? null : shm.expect(key), overSocket);
    }

    @Override
    public void close() {
        socket.close();
        if (shm != null) {
            shm.close();
        }
    }

    @Override
    public String toString() {
        return shm == null ? socket.toString() : socket + " and " + shm;
    }
}
