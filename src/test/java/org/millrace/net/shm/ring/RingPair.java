package org.millrace.net.shm.ring;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.file.ProcessIdentity;

/** Both ends of a ring without a handshake, and the ring's memory, for tests that look at it or spoil it. */
record RingPair(ShmNetwork network, RingMemory ring, ShmSender sender, ShmReceiver receiver) implements AutoCloseable {

    static RingPair make(ShmOptions options, long firstPosition) throws IOException {
        ShmNetwork network = new ShmNetwork(options, firstPosition);
        Path directory = Files.createTempDirectory("ring");
        Path socket = directory.resolve("socket");
        Path file = directory.resolve("ring");
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(socket));
            SocketChannel one = SocketChannel.open(UnixDomainSocketAddress.of(socket));
            SocketChannel other = server.accept();
            one.configureBlocking(false);
            other.configureBlocking(false);
            RingMemory ofSender = RingFile.create(file, options.access(), options.ringBytes(), firstPosition);
            RingMemory ofReceiver = RingFile.open(file, options.access(), options.ringBytes());
            ShmConnection sending = new ShmConnection(network, "sending end", one, ProcessIdentity.CURRENT, ofSender);
            ShmConnection receiving =
                    new ShmConnection(network, "receiving end", other, ProcessIdentity.CURRENT, ofReceiver);
            return new RingPair(network, ofReceiver,
                    new ShmSender(network, sending, new RingProducer(ofSender, options.ringBytes(), sending)),
                    new ShmReceiver(network, receiving, new RingConsumer(ofReceiver, options.ringBytes(), receiving)));
        } finally {
            Files.deleteIfExists(file);
            Files.deleteIfExists(socket);
            Files.delete(directory);
        }
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
        network.close();
    }
}
