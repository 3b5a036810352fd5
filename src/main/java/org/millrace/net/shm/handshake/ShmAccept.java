package org.millrace.net.shm.handshake;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.file.CurrentUser;
import org.millrace.net.shm.file.FileName;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.net.shm.ring.RingConsumer;
import org.millrace.net.shm.ring.RingFile;
import org.millrace.net.shm.ring.RingMemory;
import org.millrace.net.shm.ring.ShmConnection;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.shm.ring.ShmReceiver;

/** A connection that a listener expects. */
final class ShmAccept implements Pending<FrameReceiver> {

    private static final Logger LOG = LogManager.getLogger(ShmAccept.class);

    private final ShmListener listener;
    private final ShmNetwork network;
    private final ConnectionKey key;
    /** What became of it; null while it is expected. */
    private String end;

    ShmAccept(ShmListener listener, ShmNetwork network, ConnectionKey key) {
        this.listener = listener;
        this.network = network;
        this.key = key;
    }

    @Override
    public synchronized FrameReceiver poll() {
        if (end != null) {
            throw new ConnectionException(this + ": " + end);
        }
        Visitor visitor = listener.take(key);
        if (visitor == null) {
            return null;
        }
        end = "was returned before";
        try {
            return connect(visitor);
        } catch (IOException e) {
            visitor.refuse(new Visitor.Unwelcome(ShmHandshakeReply.NO_RING, e.toString()));
            throw new ConnectionException(this + ": the peer left while it was accepted: " + e.getMessage(), e);
        } catch (ShmUnavailableException e) {
            LOG.warn("{}: {}", this, e.getMessage());
            visitor.refuse(new Visitor.Unwelcome(ShmHandshakeReply.NO_RING, e.getMessage()));
            throw e;
        }
    }

    private FrameReceiver connect(Visitor visitor) throws IOException {
        RingHello hello = visitor.hello();
        FileName name = FileName.parse(hello.ring());
        if (name == null || !name.kind().equals(FileName.RING) || !ShmOptions.isRingLength(hello.capacity())) {
            throw new ShmUnavailableException("the peer named a ring '" + hello.ring() + "' of " + hello.capacity()
                    + " bytes, which can be none");
        }
        Path file = network.options().directory().resolve(name.toString());
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) || !CurrentUser.owns(file)) {
            throw new ShmUnavailableException("the peer's ring " + file
                    + " is not there, or not of this user; do both processes see the same directory?");
        }
        RingMemory ring = RingFile.open(file, network.options().access(), (int) hello.capacity());
        try {
            // From now on only the two mappings hold the memory: it is free again when both processes have ended,
            // however they end.
            RingFile.delete(file);
            visitor.answer(ShmHandshakeReply.ACCEPTED);
        } catch (IOException | ShmUnavailableException e) {
            ring.close();
            throw e;
        }
        ShmConnection link = new ShmConnection(network, "shared-memory connection " + key + " from " + name.owner(),
                visitor.socket(), name.owner(), ring);
        ShmReceiver receiver = new ShmReceiver(network, link, new RingConsumer(ring, hello.capacity(), link));
        network.opened(link, receiver::close);
        return receiver;
    }

    @Override
    public synchronized void close() {
        if (end == null) {
            end = "was given up";
            listener.forget(key);
        }
    }

    @Override
    public String toString() {
        return "connection " + key + " expected by " + listener;
    }
}
