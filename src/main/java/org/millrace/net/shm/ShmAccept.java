package org.millrace.net.shm;

import java.io.IOException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;
import org.millrace.net.connection.OpenResources;

/** A connection that a listener expects: a client, and the ring that it made. */
final class ShmAccept extends ExpectedConnection<ShmListener.Client> {

    private static final Logger LOG = LogManager.getLogger(ShmAccept.class);

    private final OpenResources network;
    private final ShmOptions options;

    ShmAccept(ShmListener listener, OpenResources network, ShmOptions options, ConnectionKey key) {
        super(listener, key);
        this.network = network;
        this.options = options;
    }

    @Override
    protected @Nullable FrameReceiver accept() {
        ShmListener.Client came = came().removeFirst();
        try {
            return connect(came);
        } catch (IOException e) {
            came.refuse(new Refusal(HandshakeReply.NO_RING, e.toString()));
            throw new ConnectionException(this + ": the peer left while it was accepted: " + e.getMessage(), e);
        } catch (ShmUnavailableException e) {
            LOG.warn("{}: {}", this, e.getMessage());
            came.refuse(new Refusal(HandshakeReply.NO_RING, String.valueOf(e.getMessage())));
            throw e;
        } catch (SingleCopyException e) {
            LOG.warn("{}: {}", this, e.getMessage());
            came.refuse(new Refusal(HandshakeReply.NO_SINGLE_COPY, String.valueOf(e.getMessage())));
            throw e;
        }
    }

    /** Null if it is to come again with a ring in the directory. */
    private @Nullable FrameReceiver connect(ShmListener.Client came) throws IOException {
        RingHello hello = came.hello();
        FileName name = FileName.parse(hello.ring());
        if (name == null || !(name.isSealed() || name.kind().equals(FileName.RING))
                || !ShmOptions.isRingLength(hello.capacity())) {
            throw new ShmUnavailableException("the peer named a ring '" + hello.ring() + "' of " + hello.capacity()
                    + " bytes, which can be none");
        }
        int capacity = (int) hello.capacity();
        RingMemory ring;
        try {
            ring = open(name, capacity);
        } catch (IOException e) {
            if (!name.isSealed()) {
                throw new ShmUnavailableException("cannot open the peer's ring: " + e.getMessage()
                        + "; do both processes see the directory " + options.directory() + "?", e);
            }
            LOG.debug("{}: {}; a ring in {} serves instead", this, e.getMessage(), options.directory());
            came.refuse(new Refusal(HandshakeReply.NO_SEALED_RING, String.valueOf(e.getMessage())));
            return null;
        }
        PeerMemory memory;
        try {
            memory = SingleCopyHandshake.answer(ring, options, name.owner());
            // From now on only the two mappings hold the memory: it is free again when both processes have ended,
            // however they end.
            SharedFile.withdraw(options.directory(), name);
            came.reply(HandshakeReply.ACCEPTED);
        } catch (IOException | ConnectionException e) {
            ring.close();
            throw e;
        }
        ShmConnection connection = new ShmConnection(network,
                "shared-memory connection " + key() + " from " + name.owner(), came.channel(), name.owner(), ring);
        ShmReceiver receiver = new ShmReceiver(connection, capacity, options.pieceBytes(), memory);
        network.opened(connection, receiver::close);
        return receiver;
    }

    private RingMemory open(FileName name, int capacity) throws IOException {
        if (name.isSealed() && !options.sealed()) {
            throw new IOException("sealed rings are switched off");
        }
        return RingMemory.open(SharedFile.open(options.directory(), name), name, capacity);
    }
}
