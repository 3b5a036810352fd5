package org.millrace.net.shm;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;

/**
 * A process that sends back every received frame until the test closes its ends of the connections. Frames reach the
 * process over one connection and return over another. The process ends when its standard input is closed, so that it
 * does not outlive the test.
 */
public final class ShmPeer implements AutoCloseable {

    static final ConnectionKey TO_PEER = new ConnectionKey(1, 2);
    static final ConnectionKey FROM_PEER = new ConnectionKey(3, 4);
    private static final int MEMORY_BYTES = 8 << 20;

    private final Process process;
    private final Listener listener;
    private final FrameSender sender;
    private final FrameReceiver receiver;

    /** Starts a peer and connects in both directions. */
    ShmPeer(ShmNetwork network, ShmOptions options) throws IOException {
        process = start(options);
        listener = network.listen();
        process.outputWriter().append(HexFormat.of().formatHex(listener.address())).append('\n').flush();
        Connected both = connect(network, listener, address(process), TO_PEER, FROM_PEER);
        sender = both.sender();
        receiver = both.receiver();
    }

    private static Process start(ShmOptions options) throws IOException {
        return new ProcessBuilder(List.of(ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED", "-XX:+UseSerialGC", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp",
                System.getProperty("java.class.path"), ShmPeer.class.getName(), options.directory().toString(),
                Integer.toString(options.ringBytes()), Integer.toString(options.pieceBytes()),
                options.singleCopy().use().name(), Integer.toString(options.singleCopy().fromBytes())))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private static byte[] address(Process process) throws IOException {
        BufferedReader lines = process.inputReader();
        while (true) {
            String line = lines.readLine();
            if (line == null) {
                throw new IOException("the peer ended before it said its address: see its errors above");
            }
            if (line.startsWith("address ")) {
                return HexFormat.of().parseHex(line.substring(8));
            }
        }
    }

    /**
     * Creates one connection in each direction. Both sides call this method at the same time, so neither side may wait
     * for only one of the two connections.
     */
    private static Connected connect(ShmNetwork network, Listener listener, byte[] peer, ConnectionKey out,
            ConnectionKey in) {
        Pending<FrameReceiver> accepting = listener.expect(in);
        Pending<FrameSender> connecting = network.connect(peer, out);
        return Connected.await(listener, connecting, accepting);
    }

    FrameSender sender() {
        return sender;
    }

    FrameReceiver receiver() {
        return receiver;
    }

    Process process() {
        return process;
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
        listener.close();
        try {
            process.waitFor();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Runs the peer. Arguments: directory, ring bytes, piece bytes, {@link SingleCopy.Use}, and the minimum payload
     * length for single copy.
     */
    public static void main(String[] args) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ShmOptions options = TestOptions
                .ring(TestOptions.shm(Path.of(args[0])), Integer.parseInt(args[1]), Integer.parseInt(args[2]))
                .withSingleCopy(new SingleCopy(SingleCopy.Use.valueOf(args[3]), Integer.parseInt(args[4])));
        try (ShmNetwork network = new ShmNetwork(options); Listener listener = network.listen()) {
            System.out.println("address " + HexFormat.of().formatHex(listener.address()));
            byte[] back = HexFormat.of().parseHex(input.readLine());
            Thread.ofPlatform().daemon().start(() -> endWithParent(input));
            try (Connected both = connect(network, listener, back, FROM_PEER, TO_PEER)) {
                echo(both.sender(), both.receiver(), network.register(Arena.global().allocate(MEMORY_BYTES, 64)));
            } catch (PeerClosedException end) {
                System.err.println("peer: " + end.getMessage());
            }
        }
    }

    private static void endWithParent(BufferedReader input) {
        try {
            input.readLine();
        } catch (IOException ended) {
            // A failed read has the same effect as the end of the input.
        }
        Runtime.getRuntime().halt(1);
    }

    private static void echo(FrameSender sender, FrameReceiver receiver, MemoryRegion memory) {
        for (long frames = 1;; frames++) {
            FrameHeader header;
            while ((header = receiver.poll()) == null) {
                Thread.yield();
            }
            receiver.accept(memory, 0);
            while (receiver.framesCompleted() < frames) {
                receiver.progress();
            }
            sender.offer(header, memory, 0);
            while (sender.framesCompleted() < frames) {
                sender.progress();
            }
        }
    }
}
