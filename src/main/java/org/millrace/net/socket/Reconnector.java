package org.millrace.net.socket;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.Admission;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.ListeningPorts;
import org.millrace.net.connection.TlsChannel;
import org.millrace.trace.ProcessTrace;

/**
 * Restores lost streams on a thread, which sleeps while no stream is lost. Networks of a process share one reconnector
 * if they have the same options. The reconnector has its own port, because the listeners of connections are closed as
 * soon as the connections are established. Peers recognize this process by the reconnector's secret.
 */
public final class Reconnector implements Runnable {

    private static final Logger LOG = LogManager.getLogger(Reconnector.class);
    /** Maximum number of clients that have not yet proven that they know the secret. */
    private static final int MAX_UNPROVEN = 64;
    private static final int BACKLOG = 1024;
    private static final long STEP_MILLIS = 5;
    private static final long CLOSE_MILLIS = 5000;
    /**
     * Time limit of a TCP connection attempt. The operating system sends its second SYN after one second, and its third
     * SYN two seconds later. Instead of the third SYN, the reconnector begins a new attempt.
     */
    private static final long CONNECT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final long FIRST_HANDSHAKE_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long LAST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
    /**
     * Maximum time for which the close of a sender waits until the frames of lost streams are sent again. The time
     * begins with the first close. All closes within the next {@link #CLOSING_ROW_NANOS} share this time.
     */
    static final long CLOSING_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long CLOSING_ROW_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final int MAX_CLOSED = 4096;
    static final int OFFER_BYTES = StreamHello.RESUME_BYTES + AddressFormat.LIST_BYTES;
    private static final Map<SocketOptions, Reconnector> OF_PROCESS = new HashMap<>();

    private final SocketOptions options;
    private final byte[] secret = HelloFormat.newSecret();
    private final ServerSocketChannel server;
    private final Selector selector;
    final Map<ResumeFormat.Id, StreamRecovery> connections = new ConcurrentHashMap<>();
    private final Queue<Attempt> begun = new ConcurrentLinkedQueue<>();
    private final List<Attempt> attempts = new ArrayList<>();
    private final Admission<Client> clients = new Admission<>(MAX_UNPROVEN, new Arrivals());
    private final Thread thread = Thread.ofPlatform().daemon().name("millrace-reconnect").unstarted(this);
    /**
     * Connections that were closed deliberately (see {@link StreamRecovery#close}), with the time of the close; the
     * oldest close first. Guarded by this map's monitor.
     */
    private final Map<ResumeFormat.Id, Long> closedInOrder = new LinkedHashMap<>();
    private long closingSince;
    /** Number of networks that use this reconnector. Guarded by {@link #OF_PROCESS}. */
    private int users;
    private volatile boolean closed;

    private Reconnector(SocketOptions options, ServerSocketChannel server, Selector selector) {
        this.options = options;
        this.server = server;
        this.selector = selector;
    }

    /**
     * Returns the process's reconnector for these options. Each network that calls this method must call close once.
     */
    public static Reconnector shared(SocketOptions options) throws IOException {
        synchronized (OF_PROCESS) {
            Reconnector known = OF_PROCESS.get(options);
            if (known == null) {
                known = start(options);
                OF_PROCESS.put(options, known);
            }
            known.users++;
            return known;
        }
    }

    /** Opens the port, and starts the thread. */
    private static Reconnector start(SocketOptions options) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open();
        Selector selector = null;
        try {
            server.configureBlocking(false);
            server.bind(new InetSocketAddress(0), BACKLOG);
            ListeningPorts.opened(server, "lost streams", "");
            selector = Selector.open();
            server.register(selector, SelectionKey.OP_ACCEPT);
            Reconnector started = new Reconnector(options, server, selector);
            started.thread.start();
            return started;
        } catch (IOException e) {
            ConnectionState.closeQuietly(selector);
            ConnectionState.closeQuietly(server);
            throw e;
        }
    }

    byte[] secret() {
        return secret;
    }

    int port() {
        return server.socket().getLocalPort();
    }

    Duration deadline() {
        return options.reconnectDeadline();
    }

    void add(StreamRecovery connection) {
        connections.put(connection.id(), connection);
    }

    /**
     * @param inOrder whether the connection was closed deliberately, see {@link StreamRecovery#close}. If so, the
     *                answer to later requests of the peer is {@link ResumeFormat#CLOSED}
     */
    void remove(StreamRecovery connection, boolean inOrder) {
        if (inOrder) {
            synchronized (closedInOrder) {
                closedInOrder.put(connection.id(), System.nanoTime());
                Iterator<Long> oldest = closedInOrder.values().iterator();
                for (boolean old = true; old && oldest.hasNext();) {
                    old = System.nanoTime() - oldest.next() > deadline().toNanos() || closedInOrder.size() > MAX_CLOSED;
                    if (old) {
                        oldest.remove();
                    }
                }
            }
        }
        connections.remove(connection.id(), connection);
    }

    private boolean wasClosedInOrder(ResumeFormat.Id id) {
        synchronized (closedInOrder) {
            return closedInOrder.containsKey(id);
        }
    }

    /** Returns whether a sender that is being closed may still wait until the frames of lost streams are sent again. */
    synchronized boolean mayWait() {
        long now = System.nanoTime();
        if (closingSince == 0 || now - closingSince > CLOSING_ROW_NANOS) {
            closingSince = now | 1;
        }
        return now - closingSince < CLOSING_NANOS;
    }

    /** Begins to restore a lost stream. */
    void lost(StreamRecovery connection, int stream) {
        begun.add(new Attempt(connection, stream));
        selector.wakeup();
    }

    /**
     * Returns this process's offer to restore a control connection's stream, which belongs to no network. This process
     * sends the offer on the stream, and the peer passes the offer to {@link StreamRecovery#of}.
     */
    public byte[] offer() {
        List<InetSocketAddress> here = List.of();
        try {
            here = Interfaces.choose(options)
                    .addresses()
                    .stream()
                    .map(address -> new InetSocketAddress(address, port()))
                    .toList();
        } catch (ConnectionException noInterface) {
            LOG.debug("no other address is offered than that of the stream", noInterface);
        }
        return ByteBuffer.allocate(OFFER_BYTES)
                .put(StreamHello.encode(this))
                .put(AddressFormat.encodeList(here))
                .array();
    }

    /**
     * Ends one network's use of this reconnector. The call of the last network also stops the reconnector's thread, and
     * waits at most a few seconds until that thread has ended.
     */
    public void close() {
        synchronized (OF_PROCESS) {
            if (--users > 0) {
                return;
            }
            OF_PROCESS.remove(options);
        }
        closed = true;
        selector.wakeup();
        try {
            thread.join(CLOSE_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void run() {
        while (!closed) {
            try {
                selector.select(pauseMillis());
                selector.selectedKeys().clear();
                clients.accept(server::accept);
                if (clients.pauseNanos() > 0) {
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(STEP_MILLIS));
                }
                clients.all().forEach(this::advance);
                for (Attempt next = begun.poll(); next != null; next = begun.poll()) {
                    attempts.add(next);
                }
                attempts.removeIf(Attempt::advance);
            } catch (IOException | RuntimeException e) {
                LOG.warn("lost streams may not be restored: {}", e.toString(), e);
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(STEP_MILLIS));
            }
        }
        ListeningPorts.close(server);
        ConnectionState.closeQuietly(selector);
        clients.all().forEach(client -> ConnectionState.closeQuietly(client.channel));
        clients.closeReserve();
        attempts.forEach(Attempt::closeChannel);
    }

    /** Returns the time in milliseconds until the next step; 0 to wait for an event without a time limit. */
    private long pauseMillis() {
        if (!clients.isEmpty() || !begun.isEmpty()) {
            return STEP_MILLIS;
        }
        long now = System.nanoTime();
        long least = attempts.stream().mapToLong(attempt -> attempt.begin - now).min().orElse(Long.MAX_VALUE);
        return least == Long.MAX_VALUE ? 0 : Math.max(TimeUnit.NANOSECONDS.toMillis(least), STEP_MILLIS);
    }

    private void advance(Client client) {
        try {
            if (client.advance()) {
                clients.remove(client);
            }
        } catch (IOException e) {
            clients.remove(client);
            client.drop(e.getMessage());
        }
    }

    private SocketChannel secured(SocketChannel channel, boolean client, byte[] shared) {
        if (options.tls() == null) {
            return channel;
        }
        return client ? options.tls().client(channel, shared) : options.tls().server(channel, shared);
    }

    private static boolean isRead(SocketChannel channel, ByteBuffer to) throws IOException {
        if (to.hasRemaining() && channel.read(to) < 0) {
            throw new EOFException("the other end closed the stream in the handshake");
        }
        return !to.hasRemaining();
    }

    private static boolean isWritten(SocketChannel channel, ByteBuffer from) throws IOException {
        if (from.hasRemaining()) {
            channel.write(from);
        }
        return !from.hasRemaining();
    }

    private final class Arrivals implements Admission.Host<Client> {

        @Override
        public Client arrived(SocketChannel channel) throws IOException {
            StreamSet.configure(channel, options);
            return new Client(secured(channel, false, secret));
        }

        @Override
        public boolean knowsSecret(Client client) {
            return false;
        }

        @Override
        public void drop(Client client, String why) {
            client.drop(why);
        }
    }

    /** A client that requests a stream, until this process has answered the request. */
    private final class Client {

        private final SocketChannel channel;
        private final String name;
        private final long deadline = System.nanoTime() + options.handshakeDeadline().toNanos();
        private final ByteBuffer question = ResumeFormat.emptyQuestion();
        private final ByteBuffer challenge = ResumeFormat.newChallenge();
        private final ByteBuffer proof = ByteBuffer.allocate(ResumeFormat.HASH_BYTES);

        Client(SocketChannel channel) throws IOException {
            this.channel = channel;
            name = String.valueOf(channel.getRemoteAddress());
        }

        boolean advance() throws IOException {
            if (System.nanoTime() - deadline > 0) {
                throw new SocketTimeoutException("it sent no complete request in " + options.handshakeDeadline());
            }
            boolean asked = isRead(channel, question);
            ResumeFormat.checkBegin(question);
            if (!asked || !isWritten(channel, challenge) || !isRead(channel, proof)) {
                return false;
            }
            ResumeFormat.checkProof(secret, question, challenge, proof);
            StreamRecovery connection = connections.get(ResumeFormat.asked(question));
            int stream = ResumeFormat.stream(question);
            if (connection == null || stream >= connection.streams()) {
                channel.write(answer(
                        connection == null && wasClosedInOrder(ResumeFormat.asked(question)) ? ResumeFormat.CLOSED
                                : ResumeFormat.GONE));
                ConnectionState.closeQuietly(channel);
                return true;
            }
            channel.write(answer(ResumeFormat.KNOWN));
            if (connection.connects()) {
                ConnectionState.closeQuietly(channel);
                connection.lostThere(stream, ResumeFormat.epoch(question));
            } else {
                connection.made(stream, new StreamRecovery.Successor(channel, ResumeFormat.epoch(question),
                        answer(ResumeFormat.RESUMED)));
            }
            return true;
        }

        private ByteBuffer answer(int what) {
            return ResumeFormat.answer(what, secret, question, challenge);
        }

        void drop(String why) {
            LOG.debug("dropped {}, which asked for a lost stream: {}", name, why);
            ConnectionState.closeQuietly(channel);
        }
    }

    /** The consecutive attempts of one end of a connection to restore one stream. */
    private final class Attempt {

        private final StreamRecovery connection;
        private final int stream;
        private final long lostEpoch;
        private @Nullable SocketChannel channel;
        private boolean connected;
        private boolean known;
        /**
         * Last known stage of the handshake: -1 before the first stage, 0 for an open stream, 1 after the challenge was
         * passed, and 2 when TLS is established or not used.
         */
        private int stage;
        private long epoch;
        private long begin = System.nanoTime();
        private long pause = FIRST_PAUSE_NANOS;
        /**
         * Time limit of the next handshake. Each failed attempt doubles the limit, up to the handshake deadline of the
         * options. The first limit is short, because the network may have been cut for a moment. TCP waits for seconds
         * before it resends data that was lost in the cut, so a new attempt succeeds sooner than the old attempt.
         */
        private long patience = FIRST_HANDSHAKE_NANOS;
        private ByteBuffer question = ResumeFormat.emptyQuestion();
        private ByteBuffer challenge = ByteBuffer.allocate(ResumeFormat.CHALLENGE_BYTES);
        private @Nullable ByteBuffer proof;
        private ByteBuffer answer = ResumeFormat.emptyAnswer();

        Attempt(StreamRecovery connection, int stream) {
            this.connection = connection;
            this.stream = stream;
            lostEpoch = connection.epoch(stream);
        }

        /** Continues the attempts without waiting. Returns true when they have ended. */
        boolean advance() {
            if (connection.isClosed() || connection.end() != null || connection.epoch(stream) != lostEpoch) {
                closeChannel();
                return true;
            }
            long now = System.nanoTime();
            if (now - begin < 0) {
                return false;
            }
            try {
                return attempt(now);
            } catch (IOException | RuntimeException e) {
                LOG.debug("a stream of {} is not restored yet: {}", connection.id(), e.toString());
                closeChannel();
                connection.failed(stream, e);
                again(now);
                patience = Math.min(2 * patience, options.handshakeDeadline().toNanos());
                return false;
            }
        }

        private void again(long now) {
            begin = now + pause / connection.ways();
            pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
        }

        private boolean attempt(long now) throws IOException {
            SocketChannel open = channel == null ? open() : channel;
            if (!connected) {
                connected = open.finishConnect();
                if (!connected) {
                    checkTime(now, CONNECT_NANOS / connection.ways(), "no answer to a connection attempt");
                    return false;
                }
            }
            if (!isWritten(open, question) || !isRead(open, challenge)) {
                noteProgress(open, now);
                checkTime(now, patience, "no answer in the handshake");
                return false;
            }
            if (proof == null) {
                begin = now;
                proof = ResumeFormat.proof(connection.secret(), question, challenge);
            }
            if (!isWritten(open, proof) || !isRead(open, answer)) {
                if (!known) {
                    checkTime(now, patience, "no answer in the handshake");
                }
                return false;
            }
            return hear(open, now);
        }

        /**
         * Restarts the time limit when the handshake has reached its next stage. The progress shows that the peer's
         * host is slow and that the network is not cut.
         */
        private void noteProgress(SocketChannel open, long now) {
            int reached =
                    !(open instanceof TlsChannel tls) || tls.isEstablished() ? 2 : tls.isChallengePassed() ? 1 : 0;
            if (reached != stage) {
                stage = reached;
                begin = now;
            }
        }

        private boolean hear(SocketChannel open, long now) throws IOException {
            int said = ResumeFormat.said(answer, connection.secret(), question, challenge);
            answer.clear();
            if (said == ResumeFormat.GONE && !connection.connects() && !connection.isHeard()) {
                closeChannel();
                // The peer may not have read yet that its connection was accepted. In that case the peer does not know
                // the connection yet.
                again(now);
                return false;
            } else if (said == ResumeFormat.GONE || said == ResumeFormat.CLOSED) {
                closeChannel();
                connection.end("its process has given the connection up, or closed it", said == ResumeFormat.CLOSED);
                return true;
            } else if (said == ResumeFormat.RESUMED && known && connection.connects()) {
                channel = null;
                connection.made(stream, new StreamRecovery.Successor(open, epoch, null));
                return true;
            } else if (said != ResumeFormat.KNOWN || known) {
                throw new ProtocolException("an answer that is not valid");
            }
            connection.heard();
            known = true;
            if (!connection.connects()) {
                closeChannel();
                again(now);
            }
            return false;
        }

        private void checkTime(long now, long most, String what) throws SocketTimeoutException {
            if (now - begin > most) {
                throw new SocketTimeoutException(what);
            }
        }

        private SocketChannel open() throws IOException {
            StreamRecovery.Peer peer = connection.peer(stream);
            connected = false;
            stage = -1;
            known = false;
            proof = null;
            challenge.clear();
            answer.clear();
            epoch = connection.connects() ? connection.nextEpoch(stream) : lostEpoch;
            question = ResumeFormat.question(connection.id().other(), stream, epoch);
            SocketChannel opened =
                    SocketChannel.open(peer.remote().getAddress().getAddress().length == 4 ? StandardProtocolFamily.INET
                            : StandardProtocolFamily.INET6);
            channel = opened;
            StreamSet.configure(opened, options);
            if (peer.local() != null) {
                opened.bind(new InetSocketAddress(peer.local(), 0));
            }
            opened.connect(peer.remote());
            return channel = secured(opened, true, connection.secret());
        }

        void closeChannel() {
            ConnectionState.closeQuietly(channel);
            channel = null;
        }
    }

    /** Reports the lost streams of a connection, and their restoration, in the log and the trace. */
    public static final class Outage {

        private static final Logger LOG = LogManager.getLogger(Outage.class);

        private final Object connection;
        private final String peer;
        private final Map<Object, Long> lostSince = new HashMap<>();
        private boolean waits;
        /** Trace entry while the connection waits for a stream; null otherwise, or without a trace. */
        private ProcessTrace.@Nullable SilenceTrace cut;

        /**
         * @param connection the connection, for messages
         * @param peer       the peer process
         */
        public Outage(Object connection, String peer) {
            this.connection = connection;
            this.peer = peer;
        }

        /**
         * Reports that a rail's stream, or the connection's only stream, is lost.
         *
         * @param left description of the streams or rails that the connection can still use; null if there are none and
         *             the connection waits
         * @param owed number of pieces that this end resends; -1 at an end that never resends pieces
         */
        public synchronized void begins(Object rail, String why, @Nullable String left, int owed) {
            lostSince.putIfAbsent(rail, System.nanoTime());
            LOG.warn("{}: lost {} ({}){}; the connection {}", connection, rail, why,
                    owed < 0 ? "" : ": " + owed + " of its pieces are sent again",
                    left == null ? "waits until it is restored" : "continues over " + left);
            if (left == null) {
                waits = true;
                over();
                ProcessTrace trace = ProcessTrace.current();
                cut = trace == null ? null
                        : trace.cut(connection.toString(), peer,
                                "lost " + rail + " (" + why + "), its last; waits until it is restored");
            }
        }

        /** Reports that the stream of a rail is restored. */
        public synchronized void ended(Object rail) {
            Long since = lostSince.remove(rail);
            if (since != null) {
                long nanos = System.nanoTime() - since;
                ProcessTrace trace = ProcessTrace.current();
                if (waits && trace != null) {
                    trace.outage(connection.toString(), rail + " is restored after " + nanos / 1_000_000 + " ms",
                            nanos);
                }
                LOG.log(waits ? Level.WARN : Level.INFO, "{}: {} is restored after {} ms", connection, rail,
                        nanos / 1_000_000);
                waits = false;
                over();
            }
        }

        /** Ends the trace entry, if any, because the connection no longer waits for a stream. */
        public synchronized void over() {
            if (cut != null) {
                cut.heard();
                cut = null;
            }
        }
    }
}
