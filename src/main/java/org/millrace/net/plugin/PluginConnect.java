package org.millrace.net.plugin;

import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.connection.HandshakeReply.Unanswered;
import org.millrace.net.connection.OutgoingConnection;
import org.millrace.net.socket.AddressFormat;
import org.millrace.net.socket.Interfaces;
import org.millrace.net.socket.OutgoingStream;
import org.millrace.net.socket.SocketOptions;

/**
 * A pending connection to a listener. This side requests the handles of the peer's plugin over TCP. Afterwards, this
 * side's plugin connects to these handles.
 */
final class PluginConnect extends OutgoingConnection {

    private final DeviceSet devices;
    /** Watch of the plugin's calls; null before the first call. */
    private @Nullable CallWatch watch;
    private final SocketOptions options;
    private final InetSocketAddress listener;
    private final byte[] secret;
    private final ConnectionKey key;
    private @Nullable OutgoingStream stream;
    private final ByteBuffer received = ByteBuffer.allocate(PluginHello.Answer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private PluginHello.@Nullable Answer answer;
    private @Nullable PluginDevice device;
    private @Nullable CommInMaking messages;
    private @Nullable CommInMaking payloads;
    private boolean handedOver;

    public PluginConnect(DeviceSet devices, SocketOptions options, byte[] address, ConnectionKey key) {
        this(devices, options, address, PluginListener.ADDRESSES.decode(address), key);
    }

    private PluginConnect(DeviceSet devices, SocketOptions options, byte[] address, InetSocketAddress to,
            ConnectionKey key) {
        super(devices.open(), "connection " + key + " by the network plugin " + devices.session().plugin() + " to "
                + OutgoingStream.name(to), options.connectDeadline());
        this.devices = devices;
        this.options = options;
        this.listener = Interfaces.reachable(to, () -> Interfaces.choose(options).addresses());
        this.key = key;
        secret = AddressFormat.secret(address);
        stream = open();
    }

    private OutgoingStream open() {
        PluginHello hello = new PluginHello(ProcessHandle.current().pid(), devices.sizes(), devices.session().plugin());
        return new OutgoingStream(null, listener, PluginHello.FORMAT, hello.encode(secret, key), options);
    }

    @Override
    protected @Nullable FrameSender advance() {
        try {
            OutgoingStream opened = stream == null ? open() : stream;
            stream = opened;
            if (!opened.advance() || answer == null && !opened.receive(received, "where its plugin listens")) {
                return null;
            }
            answer = answer == null ? PluginHello.Answer.decode(received) : answer;
            return connect(opened, answer);
        } catch (Unanswered e) {
            throw new Unanswered(this + ": " + e.getMessage(), e);
        } catch (ConnectionException e) {
            throw new ConnectionException(this + ": " + e.getMessage(), e);
        }
    }

    private @Nullable FrameSender connect(OutgoingStream over, PluginHello.Answer with) {
        if (device == null) {
            device = devices.matching(with.device());
            watch = CallWatch.of(toString(), devices.callLimit());
            messages = CommInMaking.connect(devices.session(), watch, device.index(), with.messages());
            payloads = CommInMaking.connect(devices.session(), watch, device.index(), with.payloads());
        }
        if (!messages.advance() | !payloads.advance()) {
            return null;
        }
        PluginConnection connection = new PluginConnection(network(), this + ", " + over.process() + ", over " + device,
                over.process(), over.channel(), devices.session(), devices.callLimit());
        PluginSender sender =
                new PluginSender(connection, with.sizes(), messages.take(), payloads.take(), devices.regions());
        messages.close();
        payloads.close();
        handedOver = true;
        stopWatch();
        network().opened(connection, sender::close);
        return sender;
    }

    @Override
    protected String waitingFor() {
        return (stream != null && answer == null ? stream.waitingFor() : "the plugin's connect to end")
                + "; is the peer alive and accepting, and does a firewall let it through?";
    }

    private void stopWatch() {
        if (watch != null) {
            watch.close();
        }
    }

    @Override
    protected void release() {
        if (handedOver) {
            return;
        }
        stopWatch();
        if (messages != null) {
            messages.close();
        }
        if (payloads != null) {
            payloads.close();
        }
        if (stream != null) {
            stream.close();
            stream = null;
        }
    }
}
