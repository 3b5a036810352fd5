package org.millrace.net.connection;

import java.io.IOException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Set;

/**
 * A TCP stream with a transformation of its bytes. Subclasses transform bytes in {@code write} before they are sent,
 * and in {@code read} after they are received. Each method that transfers no bytes calls the wrapped stream's method of
 * the same name. The channel does not block.
 */
abstract class FilterSocketChannel extends SocketChannel {

    final SocketChannel stream;

    /** Wraps a stream, which is closed together with this channel. */
    FilterSocketChannel(SocketChannel stream) {
        super(stream.provider());
        this.stream = stream;
    }

    @Override
    public long read(ByteBuffer[] to, int offset, int length) throws IOException {
        long all = 0;
        for (int i = offset; i < offset + length; i++) {
            int read = read(to[i]);
            if (read < 0) {
                return all == 0 ? -1 : all;
            }
            all += read;
            if (to[i].hasRemaining()) {
                break;
            }
        }
        return all;
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) throws IOException {
        long all = 0;
        for (int i = offset; i < offset + length; i++) {
            all += write(from[i]);
            if (from[i].hasRemaining()) {
                break;
            }
        }
        return all;
    }

    @Override
    protected void implCloseSelectableChannel() throws IOException {
        stream.close();
    }

    @Override
    protected void implConfigureBlocking(boolean block) throws IOException {
        if (block) {
            throw new IOException("a stream under TLS does not block");
        }
        stream.configureBlocking(false);
    }

    @Override
    public SocketChannel bind(SocketAddress local) throws IOException {
        stream.bind(local);
        return this;
    }

    @Override
    public <T> SocketChannel setOption(SocketOption<T> name, T value) throws IOException {
        stream.setOption(name, value);
        return this;
    }

    @Override
    public <T> T getOption(SocketOption<T> name) throws IOException {
        return stream.getOption(name);
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
        return stream.supportedOptions();
    }

    @Override
    public SocketChannel shutdownInput() throws IOException {
        stream.shutdownInput();
        return this;
    }

    @Override
    public SocketChannel shutdownOutput() throws IOException {
        stream.shutdownOutput();
        return this;
    }

    @Override
    public Socket socket() {
        return stream.socket();
    }

    @Override
    public boolean isConnected() {
        return stream.isConnected();
    }

    @Override
    public boolean isConnectionPending() {
        return stream.isConnectionPending();
    }

    @Override
    public boolean connect(SocketAddress remote) throws IOException {
        return stream.connect(remote);
    }

    @Override
    public boolean finishConnect() throws IOException {
        return stream.finishConnect();
    }

    @Override
    public SocketAddress getRemoteAddress() throws IOException {
        return stream.getRemoteAddress();
    }

    @Override
    public SocketAddress getLocalAddress() throws IOException {
        return stream.getLocalAddress();
    }
}
