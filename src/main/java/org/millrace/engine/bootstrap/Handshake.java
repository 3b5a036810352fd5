package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Message.Challenge;
import org.millrace.engine.bootstrap.Message.Hello;
import org.millrace.engine.bootstrap.Message.OtherVersion;
import org.millrace.engine.bootstrap.Message.Proof;
import org.millrace.engine.bootstrap.Message.Rejected;

/**
 * A rank connects to rank 0, makes sure that it is rank 0, and shows that it belongs to the group. Runs on the caller's
 * thread, before there is a control thread.
 */
final class Handshake {

    /** Somebody listens who cannot be rank 0 of this group. */
    static final class WrongPlaceException extends ProtocolException {

        private static final long serialVersionUID = 1L;

        WrongPlaceException(String message) {
            super(message);
        }
    }

    /** Who answered, and that it knows the secret. */
    record Greeted(ControlConnection link, Hello hello, Challenge challenge) {
    }

    /** One attempt; rank 0 answers within milliseconds, unless it is not rank 0. */
    private static final Duration ATTEMPT = Duration.ofSeconds(2);

    private final Selector selector;
    private final RankIdentity self;
    private final int size;

    Handshake(Selector selector, RankIdentity self, int size) {
        this.selector = selector;
        this.self = self;
        this.size = size;
    }

    /**
     * Connects and hears who is there.
     *
     * @throws WrongPlaceException    if it is not rank 0 of this group
     * @throws SocketTimeoutException if it accepts the connection and says nothing
     * @throws IOException            if nobody listens, or the connection is lost
     * @throws MillraceException      if it is another release
     */
    Greeted greet(ServerAddress place, Deadline deadline) throws IOException {
        Deadline attempt = deadline.orIn(ATTEMPT);
        ControlConnection link = new ControlConnection(connect(place, attempt), selector);
        try {
            Hello hello = new Hello(self.rank(), size, self.pid(), self.host(), Secret.randomBytes());
            link.send(MessageCodec.encode(hello));
            return new Greeted(link, hello, verified(answer(link, place, attempt), hello, place));
        } catch (IOException | RuntimeException e) {
            link.close();
            throw e;
        }
    }

    /** Shows in turn that this rank knows the secret. Whether it is let in is the next message. */
    void prove(Greeted greeted, ServerAddress place) {
        byte[] proof = place.secret()
                .memberProof(greeted.hello(), greeted.challenge().identity(), greeted.challenge().nonce());
        greeted.link().send(MessageCodec.encode(new Proof(proof)));
        greeted.link().trust();
    }

    private SocketChannel connect(ServerAddress place, Deadline attempt) throws IOException {
        SocketChannel channel = SocketChannel.open();
        try {
            channel.configureBlocking(false);
            if (!channel.connect(place.address())) {
                SelectionKey key = channel.register(selector, SelectionKey.OP_CONNECT);
                while (!channel.finishConnect()) {
                    if (attempt.expired()) {
                        throw new ConnectException("no answer from " + place + " within " + attempt);
                    }
                    select(attempt);
                }
                key.cancel();
                selector.selectNow(); // the channel can be registered anew only after that
            }
            return channel;
        } catch (ConnectException e) {
            channel.close();
            throw new ConnectException(e.getMessage() + ": nobody listens at " + place);
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    private Message answer(ControlConnection link, ServerAddress place, Deadline attempt) throws IOException {
        Queue<Message> answers = new ArrayDeque<>();
        while (true) {
            if (attempt.expired()) {
                throw new SocketTimeoutException("who listens at " + place + " did not answer within " + attempt);
            }
            select(attempt);
            try {
                link.serve(answers::add);
            } catch (IOException e) {
                if (answers.isEmpty()) { // otherwise it said why it ended the connection
                    throw e instanceof ProtocolException
                            ? new WrongPlaceException("who listens at " + place + " " + e.getMessage())
                            : e;
                }
            }
            if (!answers.isEmpty()) {
                return answers.remove();
            }
        }
    }

    private static Challenge verified(Message answer, Hello hello, ServerAddress place) throws IOException {
        return switch (answer) {
            case Challenge challenge -> {
                byte[] expected = place.secret().coordinatorProof(hello, challenge.identity(), challenge.nonce());
                if (!Secret.same(expected, challenge.proof())) {
                    throw new WrongPlaceException(challenge.identity() + " at " + place + " has another secret: "
                            + "it is another group's rank 0, or the ranks were not given the same secret");
                }
                yield challenge;
            }
            case OtherVersion other -> throw new MillraceException("rank 0 at " + place + " speaks version "
                    + other.version() + " of the control protocol, this rank version " + MessageCodec.VERSION
                    + "; all ranks need the same release");
            case Rejected rejected ->
                throw new MillraceException("rank 0 at " + place + " refuses this rank: " + rejected.reason());
            default -> throw new WrongPlaceException(
                    "who listens at " + place + " answers with a " + answer.getClass().getSimpleName());
        };
    }

    private void select(Deadline attempt) throws IOException {
        selector.select(attempt.remainingMillis());
        selector.selectedKeys().clear();
        if (Thread.currentThread().isInterrupted()) {
            throw new MillraceException("interrupted while rank " + self.rank() + " connected to rank 0");
        }
    }
}
