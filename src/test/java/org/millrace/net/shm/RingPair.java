package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.UnaryOperator;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.OpenResources;

/** Both ends of a ring without a handshake, and the ring's memory, for tests that inspect or corrupt it. */
record RingPair(OpenResources network, RingMemory ring, ShmSender sender,
        ShmReceiver receiver) implements AutoCloseable {

    static RingPair make(ShmOptions options, long firstPosition) throws IOException {
        return make(options, firstPosition, UnaryOperator.identity());
    }

    /**
     * Creates a pair whose receiver uses a modified reader of the sender's memory.
     *
     * @param spoiled function that converts the normal reader to the modified reader
     */
    static RingPair make(ShmOptions options, long firstPosition, UnaryOperator<PeerMemory> spoiled) throws IOException {
        try (Maker maker = new Maker(options)) {
            return maker.make(firstPosition, spoiled);
        }
    }

    /** Creates many pairs quickly. */
    static final class Maker implements AutoCloseable {

        private final ShmOptions options;
        private final Path directory = Files.createTempDirectory("ring");
        private final UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.resolve("socket"));
        private final ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);

        Maker(ShmOptions options) throws IOException {
            this.options = options;
            server.bind(address);
        }

        RingPair make(long firstPosition, UnaryOperator<PeerMemory> spoiled) throws IOException {
            OpenResources open = new OpenResources("network under test");
            SocketChannel one = SocketChannel.open(address);
            SocketChannel other = server.accept();
            one.configureBlocking(false);
            other.configureBlocking(false);
            SharedFile file =
                    file(RingLayout.allocatedBytes(options.ringBytes()), RingLayout.fileBytes(options.ringBytes()));
            RingMemory ofSender = RingMemory.create(file, options.ringBytes(), firstPosition);
            RingMemory ofReceiver =
                    RingMemory.open(SharedFile.open(directory, file.name()), file.name(), options.ringBytes());
            file.withdraw();
            SingleCopyHandshake.invite(ofSender, options);
            PeerMemory found = SingleCopyHandshake.answer(ofReceiver, options, ProcessIdentity.CURRENT);
            PeerMemory memory = found == null ? null : spoiled.apply(found);
            ShmConnection sending = new ShmConnection(open, "sending end", one, ProcessIdentity.CURRENT, ofSender);
            ShmConnection receiving =
                    new ShmConnection(open, "receiving end", other, ProcessIdentity.CURRENT, ofReceiver);
            return new RingPair(open, ofReceiver, new ShmSender(sending, options),
                    new ShmReceiver(receiving, options.ringBytes(), options.pieceBytes(), memory));
        }

        private SharedFile file(long allocated, long length) throws IOException {
            return SharedFile.canBeSealedFor(ProcessIdentity.CURRENT) ? SharedFile.createSealed(allocated, length)
                    : SharedFile.create(directory, FileName.RING, allocated, length);
        }

        @Override
        public void close() throws IOException {
            server.close();
            Files.deleteIfExists(address.getPath());
            Files.delete(directory);
        }
    }

    MemoryRegion register(MemorySegment memory) {
        return ShmNetwork.ShmRegion.of(network, memory, new SingleCopy(SingleCopy.Use.WHERE_IT_PAYS, 0));
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
        network.close();
    }
}
