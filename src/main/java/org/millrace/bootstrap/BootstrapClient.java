package org.millrace.bootstrap;

import java.io.IOException;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.Message.Challenge;
import org.millrace.bootstrap.Message.Hello;
import org.millrace.bootstrap.Message.OtherVersion;
import org.millrace.bootstrap.Message.Proof;
import org.millrace.bootstrap.Message.Rejected;
import org.millrace.bootstrap.Rendezvous.ServerAddress;
import org.millrace.foreign.SystemError;
import org.millrace.net.socket.SocketOptions;
import org.millrace.trace.JoinTrace;

/**
 * Connects a rank other than rank 0 to rank 0. Each attempt connects, verifies rank 0, and proves that this rank
 * belongs to the group. Attempts are repeated until rank 0 has answered the proof, or until the deadline. Runs on the
 * caller's thread, before the control thread exists.
 */
final class BootstrapClient {

    /** Thrown if the process that listens at the address cannot be rank 0 of this group. */
    static final class NotRankZeroException extends ProtocolException {

        private static final long serialVersionUID = 1L;

        NotRankZeroException(String message) {
            super(message);
        }
    }

    /** Thrown if the process at the address refuses this rank, and has not proved that it knows the secret. */
    static final class UnprovenRefusalException extends IOException {

        private static final long serialVersionUID = 1L;

        UnprovenRefusalException(String message) {
            super(message + "; it has not shown that it knows the secret");
        }
    }

    /** Thrown if rank 0 belongs to another run. */
    private static final class OtherRunException extends IOException {

        private static final long serialVersionUID = 1L;

        OtherRunException(String message) {
            super(message);
        }
    }

    /** Thrown if no process listens at the address. */
    private static final class RefusedException extends ConnectException {

        private static final long serialVersionUID = 1L;

        RefusedException(String message) {
            super(message);
        }
    }

    /** Connection to rank 0, and the first message of each side. Rank 0 has proved that it knows the secret. */
    record RankZero(ControlConnection connection, Hello hello, Challenge challenge) {
    }

    private static final long MIN_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
    /**
     * Time limit of the first attempt. Rank 0 answers within milliseconds, unless another process listens at the
     * address or rank 0 gets no core. A client cannot distinguish these cases. Each attempt without an answer therefore
     * doubles the time limit of the next attempt. Shorter limits would only cause more work for a slow rank 0. If rank
     * 0 is known to listen at the address, one attempt may take all the remaining time.
     */
    private static final Duration ATTEMPT = Duration.ofSeconds(2);
    /**
     * Number of refusals or wrong answers after which this rank gives up. The number includes only refusals and answers
     * of processes that have not proved their knowledge of the secret. A process without this proof may be any program,
     * and may soon end.
     */
    private static final int DOUBTS = 7;
    private static final long DOUBT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    /**
     * Time during which this rank continues to try after it has reached rank 0 of another run. If the other run is an
     * older run that is about to end, this rank must wait. If the other run is a newer run, rank 0 of this run will
     * never listen, so the wait is limited.
     */
    private static final Duration OTHER_RUN = Duration.ofSeconds(2);
    /**
     * Factor that extends the time limit of an attempt under TLS. The first TLS handshakes of two processes load and
     * interpret a thousand classes.
     */
    private static final int TLS_FACTOR = 5;

    private final Selector selector;
    private final RankIdentity self;
    private final int size;
    private final SocketOptions sockets;
    private Duration patience;
    /** The first process that has answered as rank 0 of this rank's run; null before the first answer. */
    private @Nullable RankIdentity met;

    BootstrapClient(Selector selector, RankIdentity self, int size, SocketOptions sockets) {
        this(selector, self, size, sockets, ATTEMPT);
    }

    /** Creates a client with a given time limit for the first attempt. */
    BootstrapClient(Selector selector, RankIdentity self, int size, SocketOptions sockets, Duration attempt) {
        this.sockets = sockets;
        this.selector = selector;
        this.self = self;
        this.size = size;
        this.patience = attempt;
    }

    /**
     * Connects to rank 0. Returns this rank's end of the connection once rank 0 has answered the proof. Also returns
     * this rank's end if the deadline passes after the proof was sent. The caller's wait for the group then fails.
     */
    Member connect(Rendezvous rendezvous, GroupState group, Deadline deadline) throws IOException {
        String what = self + " cannot join the group at " + rendezvous;
        @Nullable
        IOException why = null;
        @Nullable
        OtherRunException otherRun = null;
        JoinTrace trace = group.trace();
        Deadline end = deadline;
        patience = rendezvous.isListening() ? deadline.allowed() : patience;
        int attempts = 0;
        int doubts = 0;
        for (long pause = MIN_PAUSE_NANOS;; pause = Math.min(2 * pause, MAX_PAUSE_NANOS)) {
            try {
                ServerAddress server = rendezvous.find(attempts++);
                if (why == null) { // after a failed attempt, the trace keeps the text of its failure
                    trace.activity("connects to rank 0 at " + server);
                }
                RankZero rankZero = handshake(server, deadline);
                checkRun(rankZero, what);
                prove(rankZero, server);
                trace.activity("waits until " + rankZero.challenge().identity() + " at " + server + " admits it");
                group.present(rankZero.challenge().identity());
                return asked(new Member(group, selector, sockets, rankZero), deadline);
            } catch (IOException e) {
                trace.activity("cannot join: " + e.getMessage());
                if (e instanceof RefusedException && rendezvous.isListening()) {
                    throw new PeerLostException(what + ": rank 0 has ended or left: " + e.getMessage(), self.rank(), 0,
                            null, e);
                }
                if (e instanceof OtherRunException other && otherRun == null) {
                    otherRun = other;
                    end = deadline.orIn(OTHER_RUN);
                }
                if (otherRun != null && end.expired()) {
                    throw new MillraceException(what + ": " + otherRun.getMessage(), otherRun);
                }
                if (e instanceof UnprovenRefusalException
                        || e instanceof NotRankZeroException && !rendezvous.mayBeStale()) {
                    if (++doubts == DOUBTS) {
                        throw new MillraceException(what + ": " + e.getMessage(), e);
                    }
                    pause = DOUBT_PAUSE_NANOS << doubts;
                }
                if (e instanceof SocketTimeoutException) {
                    patience = patience.multipliedBy(2);
                }
                // The deadline may cut the last attempt short. The error of the shortened attempt is less informative
                // than the error of the previous attempt, so the earlier error is kept.
                if (why == null || !deadline.expired()) {
                    why = e;
                }
                if (deadline.expired()) {
                    throw new DeadlineException(what + ": rank 0 has not answered within " + deadline + "; last "
                            + "attempt: " + why.getMessage(), self.rank(), 0, null, why);
                }
            }
            LockSupport.parkNanos(Math.min(pause, deadline.remainingNanos()));
            if (Thread.currentThread().isInterrupted()) {
                throw new MillraceException(what + ": interrupted while waiting for rank 0");
            }
        }
    }

    /**
     * Connects once, and verifies that rank 0 answers.
     *
     * @throws NotRankZeroException     if the process at the address is not rank 0 of this group
     * @throws SocketTimeoutException   if a process accepts the connection and does not answer
     * @throws IOException              if nothing listens at the address, or the connection is lost
     * @throws UnprovenRefusalException if the process at the address reports another release, or refuses this rank
     */
    RankZero handshake(ServerAddress server, Deadline deadline) throws IOException {
        Deadline attempt = deadline.orIn(server.tls() == null ? patience : patience.multipliedBy(TLS_FACTOR));
        SocketChannel channel = open(server, attempt);
        ControlConnection connection = new ControlConnection(
                server.tls() == null ? channel : server.tls().client(channel, server.secret().forTls()), selector);
        try {
            Hello hello = new Hello(self, size, Secret.randomBytes());
            connection.send(MessageCodec.encode(hello));
            return new RankZero(connection, hello, verified(answer(connection, server, attempt), hello, server));
        } catch (IOException | RuntimeException e) {
            connection.close();
            throw e;
        }
    }

    /**
     * Checks that rank 0 belongs to this rank's run.
     *
     * @throws OtherRunException if rank 0 states another run; a later attempt may reach rank 0 of this rank's run
     * @throws MillraceException if this rank has no {@code MILLRACE_RUN_ID} and has met another process as rank 0
     *                           before; the run of this rank has then ended
     */
    private void checkRun(RankZero rankZero, String what) throws OtherRunException {
        RankIdentity zero = rankZero.challenge().identity();
        String otherRun = self.otherRun(zero);
        if (otherRun != null) {
            rankZero.connection().close();
            throw new OtherRunException(otherRun);
        }
        if (met != null && !met.equals(zero) && self.run().isEmpty()) {
            rankZero.connection().close();
            throw new MillraceException(what + ": it has met " + met + ", which did not admit it, and now " + zero
                    + "; start all ranks again, or set MILLRACE_RUN_ID to the same text on all ranks of one run");
        }
        met = zero;
    }

    /**
     * Sends the proof that this rank knows the secret. Rank 0's next message reports whether rank 0 admits this rank.
     */
    private static void prove(RankZero rankZero, ServerAddress server) {
        byte[] proof = server.secret()
                .proof(Secret.Side.MEMBER, rankZero.hello(), rankZero.challenge().identity(),
                        rankZero.challenge().nonce());
        rankZero.connection().send(MessageCodec.encode(new Proof(proof)));
        RankIdentity zero = rankZero.challenge().identity();
        byte[] nonce = rankZero.challenge().nonce();
        rankZero.connection().sealOutgoing(server.secret().seal(Secret.Side.MEMBER, rankZero.hello(), zero, nonce));
        rankZero.connection()
                .sealIncoming(server.secret().seal(Secret.Side.COORDINATOR, rankZero.hello(), zero, nonce));
        rankZero.connection().trust(zero);
    }

    /**
     * Waits for rank 0's answer to the proof. A connection that rank 0 closes without an answer is no refusal: rank 0
     * may have too many clients or no free file descriptor.
     *
     * @throws IOException if the connection ended without an answer; a retry may succeed
     */
    private Member asked(Member member, Deadline deadline) throws IOException {
        try {
            while (!member.isAnswered() && !deadline.expired()) {
                select(deadline);
                member.hear();
            }
            return member;
        } catch (IOException | RuntimeException e) {
            member.close();
            throw e;
        }
    }

    private static SocketChannel open(ServerAddress server, Deadline attempt) throws IOException {
        SocketChannel channel = SocketChannel.open();
        try {
            // A timeout of 0 would mean no timeout.
            int millis = Math.clamp(attempt.remainingMillis(), 1, Integer.MAX_VALUE);
            channel.socket().connect(server.address(), millis);
            return channel;
        } catch (SocketTimeoutException e) {
            channel.close();
            throw new ConnectException(
                    "no answer from " + server + " within " + attempt + ": no process listens at " + server);
        } catch (ConnectException e) {
            channel.close();
            String why = e.getMessage() + ": no process listens at " + server;
            throw SystemError.isRefusal(e) ? new RefusedException(why) : new ConnectException(why);
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    private Message answer(ControlConnection connection, ServerAddress server, Deadline attempt) throws IOException {
        Queue<Message> answers = new ArrayDeque<>();
        while (true) {
            if (attempt.expired()) {
                throw new SocketTimeoutException("the process at " + server + " did not answer within " + attempt);
            }
            select(attempt);
            try {
                connection.serve(answers::add);
            } catch (IOException e) {
                // An answer that has arrived is used in spite of the error, because it explains why the peer ended the
                // connection.
                if (answers.isEmpty()) {
                    throw e instanceof ProtocolException
                            ? new NotRankZeroException("the process at " + server + " " + e.getMessage())
                            : new IOException("the process at " + server + " ended the connection without an answer ("
                                    + e.getMessage() + "); it is not rank 0, or cannot accept more clients", e);
                }
            }
            if (!answers.isEmpty()) {
                return answers.remove();
            }
        }
    }

    private static Challenge verified(Message answer, Hello hello, ServerAddress server) throws IOException {
        return switch (answer) {
            case Challenge challenge -> {
                byte[] expected =
                        server.secret().proof(Secret.Side.COORDINATOR, hello, challenge.identity(), challenge.nonce());
                if (challenge.identity().rank() != 0 || !Secret.same(expected, challenge.proof())) {
                    throw new NotRankZeroException(challenge.identity() + " at " + server + " has another secret: "
                            + "it is another group's rank 0, or the ranks were not given the same secret");
                }
                yield challenge;
            }
            case OtherVersion other -> throw new UnprovenRefusalException("the process at " + server + " uses version "
                    + other.version() + " of the control protocol, this rank version " + MessageCodec.VERSION
                    + "; all ranks need the same release");
            case Rejected rejected -> throw new UnprovenRefusalException(
                    "the process at " + server + " refuses this rank: " + rejected.reason());
            default -> throw new NotRankZeroException(
                    "the process at " + server + " answers with a " + answer.getClass().getSimpleName());
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
