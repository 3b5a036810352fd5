package com.example.millrace.unix;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.transport.EndRequest;

/** The end that listens, in a directory that only this user can enter. */
final class ReceiveEnd extends SocketEnd {

    private ServerSocketChannel server;
    private Path directory;

    ReceiveEnd(EndRequest request) {
        super(request);
    }

    @Override
    public byte[] setup() {
        try {
            directory = Files.createTempDirectory("example-unix-" + ProcessHandle.current().pid() + "-");
            server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            server.bind(UnixDomainSocketAddress.of(path()));
            server.configureBlocking(false);
            return path().toString().getBytes(StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot listen for " + request.name() + ": " + e.getMessage(), e);
        }
    }

    private Path path() {
        return directory.resolve("socket");
    }

    @Override
    SocketChannel open(byte[] peer) throws IOException {
        SocketChannel accepted = server.accept();
        if (accepted != null) {
            stopListening();
        }
        return accepted;
    }

    @Override
    ProxyConnection progress(ConnectionInfo memory, SocketChannel connected) {
        return new ReceiveProgress(request, memory, connected, operations);
    }

    @Override
    public void proxyFree() {
        super.proxyFree();
        stopListening();
    }

    private void stopListening() {
        close(server);
        server = null;
        if (directory != null) {
            try {
                Files.deleteIfExists(path());
                Files.deleteIfExists(directory);
                directory = null;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
