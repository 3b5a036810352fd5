package org.millrace.net.plugin;

import java.io.IOException;
import java.util.Objects;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.connection.ExpectedConnection;
import org.millrace.net.connection.HandshakeReply.Refusal;
import org.millrace.net.connection.HandshakeReply;

/** A connection that a listener expects: a client, and the two communicators to which the client connects. */
final class PluginAccept extends ExpectedConnection<PluginListener.Client> {

    private static final Logger LOG = LogManager.getLogger(PluginAccept.class);

    private final DeviceSet devices;
    private final CallWatch watch;
    private @Nullable FrameSizes sizes;
    /** Connection over TCP to the client that was answered; null before the answer. */
    private @Nullable PluginConnection connection;
    private @Nullable CommInMaking messages;
    private @Nullable CommInMaking payloads;

    PluginAccept(PluginListener listener, DeviceSet devices, ConnectionKey key) {
        super(listener, key);
        this.devices = devices;
        watch = CallWatch.of("connection " + key + " expected by " + listener, devices.callLimit());
    }

    @Override
    protected boolean isComplete() {
        return super.isComplete() || connection != null;
    }

    @Override
    protected void dropAll() {
        closeComms();
        watch.close();
        super.dropAll();
        if (connection != null) {
            connection.close(() -> {});
            connection = null;
        }
    }

    private void closeComms() {
        if (messages != null) {
            messages.close();
            messages = null;
        }
        if (payloads != null) {
            payloads.close();
            payloads = null;
        }
    }

    @Override
    protected @Nullable FrameReceiver accept() {
        try {
            if (connection == null) {
                answer(came().getFirst());
            }
            return connected(Objects.requireNonNull(connection));
        } catch (IOException e) {
            dropAll();
            throw new ConnectionException(this + ": the peer left while it was accepted: " + e.getMessage(), e);
        } catch (ConnectionException e) {
            dropAll();
            throw new ConnectionException(this + ": " + e.getMessage(), e);
        }
    }

    /**
     * Answers the client with the handles of two listeners. Both listen for this client only, on the same device. The
     * devices are tried cyclically, beginning with {@link DeviceSet#next}, until the plugin can listen on a device.
     */
    private void answer(PluginListener.Client came) throws IOException {
        int first = devices.next();
        for (int i = 0; messages == null; i++) {
            int number = (first + i) % devices.devices().size();
            PluginDevice candidate = devices.devices().get(number);
            try {
                messages = CommInMaking.listen(devices.session(), watch, candidate.index());
                payloads = CommInMaking.listen(devices.session(), watch, candidate.index());
                sizes = came.hello().sizes().min(devices.sizes());
                came.tell(new PluginHello.Answer(sizes, number, messages.handle(), payloads.handle()));
                connection = new PluginConnection(devices.open(),
                        "connection " + key() + " by the network plugin " + devices.session().plugin() + " from "
                                + came.process() + ", over " + candidate,
                        came.process(), came.channel(), devices.session(), devices.callLimit());
                came().clear();
            } catch (ConnectionException e) {
                closeComms();
                LOG.warn("{}: device {} cannot be used: {}", this, candidate, e.getMessage());
                if (i + 1 == devices.devices().size()) {
                    came.refuse(new Refusal(HandshakeReply.NO_DEVICE, String.valueOf(e.getMessage())));
                    came().clear();
                    throw e;
                }
            }
        }
    }

    private @Nullable FrameReceiver connected(PluginConnection with) {
        CommInMaking first = Objects.requireNonNull(messages);
        CommInMaking second = Objects.requireNonNull(payloads);
        if (!first.advance() | !second.advance()) {
            with.lookAtPeer(true, 0, "before the plugin had connected them");
            return null;
        }
        PluginReceiver receiver =
                new PluginReceiver(with, Objects.requireNonNull(sizes), first.take(), second.take(), devices.regions());
        closeComms();
        watch.close();
        connection = null;
        devices.open().opened(with, receiver::close);
        return receiver;
    }
}
