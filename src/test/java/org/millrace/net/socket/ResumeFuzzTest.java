package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.fuzz.Fuzz;
import org.millrace.net.Connected;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.RandomFrames;

/**
 * While a connection carries frames, clients request its stream by mutated handshakes. The port answers none of these
 * handshakes, and gives no client the stream. No frame is lost or duplicated. {@code -Dmillrace.fuzz.inputs=1000000}
 * creates a million inputs.
 */
@Tag("slow")
@Timeout(value = 900, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ResumeFuzzTest {

    private static final int HANDSHAKES = 20_000;
    private static final int ANSWERS = 100_000;
    /**
     * Maximum number of clients at a time. The port keeps at most this number of clients that have not proved the
     * secret.
     */
    private static final int SOCKETS = 64;
    private static final int SLOTS = 6;
    private static final int SLOT_BYTES = 20_000;
    private static final int MORE_FRAMES = 100;
    private static final int ALL_BYTES = ResumeFormat.QUESTION_BYTES + ResumeFormat.HASH_BYTES;

    private final SocketOptions options = SocketOptions.defaults().withAddresses("lo", null, null);
    private final AtomicReference<Throwable> wrong = new AtomicReference<>();

    /**
     * Returns valid requests, each with a mask of zeros at its end. Mutations set bits of the mask. {@link #proof}
     * creates a valid proof and inverts the bits that are set in the mask.
     */
    private static List<byte[]> questions(Iterable<ResumeFormat.Id> known) {
        List<byte[]> all = new ArrayList<>();
        for (ResumeFormat.Id id : known) {
            for (long epoch : new long[] {0, 1, 2, Long.MAX_VALUE}) {
                all.add(Arrays.copyOf(ResumeFormat.question(id, 0, epoch).array(), ALL_BYTES));
            }
        }
        return all;
    }

    @Test
    void handshakes() throws Exception {
        Reconnector reconnector = Reconnector.shared(options);
        Semaphore sockets = new Semaphore(SOCKETS);
        try (SocketNetwork network = new SocketNetwork(options);
                Connected ends = Connected.make(network, network);
                Arena arena = Arena.ofShared();
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            MemoryRegion out = network.register(arena.allocate(SLOTS * SLOT_BYTES));
            MemoryRegion in = network.register(arena.allocate(SLOTS * SLOT_BYTES));
            List<byte[]> recorded = questions(reconnector.connections.keySet());
            assertEquals(2 * 4, recorded.size(), "both ends are known here");
            Thread fuzz = Thread.ofPlatform().start(() -> {
                try {
                    Fuzz.run("resume", HANDSHAKES, recorded, input -> {
                        sockets.acquire();
                        clients.execute(() -> {
                            try {
                                ask(reconnector, input, recorded.getFirst());
                            } catch (Throwable e) {
                                wrong.compareAndSet(null, e);
                            }
                            sockets.release();
                        });
                        check();
                    });
                    sockets.acquire(SOCKETS);
                } catch (Throwable e) {
                    wrong.compareAndSet(null, e);
                }
            });
            var sending = new RandomFrames.Sending(ends.sender(), out, SLOTS, 1, Long.MAX_VALUE);
            var receiving = new RandomFrames.Receiving(ends.receiver(), in, SLOTS, 1, Long.MAX_VALUE);
            while (fuzz.isAlive()) {
                sending.step();
                receiving.step();
            }
            check();
            reconnector.connections.values().forEach(end -> assertEquals(0, end.epoch(0), "somebody has the stream"));
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            // The loop exchanges frames until both ends have the new stream.
            while (reconnector.connections.values().stream().anyMatch(end -> end.epoch(0) == 0)) {
                sending.step();
                receiving.step();
            }
            for (long end = ends.receiver().framesCompleted() + MORE_FRAMES; ends.receiver().framesCompleted() < end;) {
                sending.step();
                receiving.step();
            }
            reconnector.connections.values().forEach(end -> assertEquals(1, end.epoch(0), "it is made again, once"));
        } finally {
            reconnector.close();
        }
    }

    private void check() {
        if (wrong.get() != null) {
            throw new AssertionError(wrong.get());
        }
    }

    /** @param other another request, whose proof is sent if the input inverts no bit of the valid proof */
    private static void ask(Reconnector reconnector, byte[] input, byte[] other) throws IOException {
        int asked = Math.min(input.length, ResumeFormat.QUESTION_BYTES);
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), reconnector.port())) {
            OutputStream to = client.getOutputStream();
            byte[] answer = {};
            try {
                to.write(input, 0, asked);
                if (asked == ResumeFormat.QUESTION_BYTES) {
                    byte[] challenge = client.getInputStream().readNBytes(ResumeFormat.CHALLENGE_BYTES);
                    if (challenge.length == ResumeFormat.CHALLENGE_BYTES) {
                        to.write(proof(reconnector.secret(), input, other, ByteBuffer.wrap(challenge)));
                    }
                }
                client.shutdownOutput();
                answer = client.getInputStream().readNBytes(ResumeFormat.ANSWER_BYTES);
            } catch (IOException dropped) {
                // The port has closed the stream, as expected.
            }
            assertEquals(0, answer.length, "it was answered");
        }
    }

    private static byte[] proof(byte[] secret, byte[] input, byte[] other, ByteBuffer challenge) {
        byte[] changes = Arrays.copyOfRange(input, ResumeFormat.QUESTION_BYTES, input.length);
        ByteBuffer question = ByteBuffer.wrap(input, 0, ResumeFormat.QUESTION_BYTES).slice();
        boolean none = changes.length >= ResumeFormat.HASH_BYTES;
        for (int i = 0; i < Math.min(changes.length, ResumeFormat.HASH_BYTES); i++) {
            none &= changes[i] == 0;
        }
        byte[] right = ResumeFormat.proof(secret, question, challenge).array();
        byte[] proof = none
                ? ResumeFormat.proof(secret, ByteBuffer.wrap(other, 0, ResumeFormat.QUESTION_BYTES).slice(), challenge)
                        .array()
                : right.clone();
        byte[] sent = Arrays.copyOf(proof, changes.length);
        for (int i = 0; i < changes.length; i++) {
            sent[i] ^= changes[i];
        }
        if (sent.length >= right.length && Arrays.equals(sent, 0, right.length, right, 0, right.length)) {
            sent[0] ^= 1;
        }
        return sent;
    }

    /** A client ignores a reply that was made without the secret, or for another request. */
    @Test
    void answers() throws Exception {
        byte[] secret = new byte[16];
        ByteBuffer question = ResumeFormat.question(new ResumeFormat.Id(Connected.newKey(), 3, true), 0, 1);
        ByteBuffer challenge = ResumeFormat.newChallenge();
        List<byte[]> recorded = new ArrayList<>();
        for (int what : new int[] {ResumeFormat.KNOWN, ResumeFormat.GONE, ResumeFormat.RESUMED, ResumeFormat.CLOSED}) {
            recorded.add(ResumeFormat.answer(what, secret, question, challenge).array());
            recorded.add(ResumeFormat.answer(what, secret, question, ResumeFormat.newChallenge()).array());
        }
        Fuzz.run("answers to resume", ANSWERS, recorded, input -> {
            byte[] answer = Arrays.copyOf(input, ResumeFormat.ANSWER_BYTES);
            boolean right = recorded.stream()
                    .filter(each -> recorded.indexOf(each) % 2 == 0)
                    .anyMatch(each -> Arrays.equals(each, answer));
            if (!right) {
                ByteBuffer said =
                        ByteBuffer.wrap(answer).order(java.nio.ByteOrder.LITTLE_ENDIAN).position(answer.length);
                assertThrows(ProtocolException.class, () -> ResumeFormat.said(said, secret, question, challenge));
            }
        });
        assertTrue(recorded.size() == 8);
    }
}
