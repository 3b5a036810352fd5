package org.millrace.net.connection;

import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.function.Supplier;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * A TCP stream under TLS. The stream reads and writes like a non-blocking channel. The calls that read and write also
 * perform the handshake. A {@link ChallengeResponse} precedes TLS. Until this exchange has succeeded, the stream has
 * neither an engine nor a buffer. Used by one thread at a time, but any thread may close it. The JDK's engine allocates
 * memory during use.
 *
 * <p>
 * Encrypted bytes that the operating system has not accepted count as not written. The caller offers the same bytes
 * again, and this channel does not encrypt them a second time. When a caller has written all its bytes, the operating
 * system has accepted all of them.
 *
 * <pre>
 *   write   caller's bytes ─▶ engine ─▶ out ─▶ stream          read   stream ─▶ in ─▶ engine ─▶ caller's buffer
 *                                                                                      └▶ plain, if the buffer is small
 * </pre>
 */
public final class TlsChannel extends FilterSocketChannel {

    /** Number of TLS records in one call of the operating system: 128 KiB of data. */
    private static final int RECORDS = 8;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final String ALTERED = "; something between the two ends changes data, or one end is no rank";
    private static final String SAME =
            "; MILLRACE_TLS, and the secret or the certificates, must be the same on all ranks";

    private final Supplier<SSLEngine> engines;
    /** The exchange before TLS; null after its success. */
    private @Nullable ChallengeResponse challenge;
    private SSLEngine engine;
    private int recordBytes;
    /** Received bytes that are still encrypted, between position and limit. */
    private ByteBuffer in = NOTHING;
    /** Encrypted bytes that are not sent, between position and limit. */
    private ByteBuffer out = NOTHING;
    /** Decrypted bytes that the caller has not read yet, between position and limit. */
    private ByteBuffer plain = NOTHING;
    /** Number of bytes that the caller will offer again and that are already encrypted in {@link #out}. */
    private int held;
    private boolean established;
    /** Whether {@link #in} is empty or ends with an incomplete record. More bytes must then arrive. */
    private boolean starved = true;
    /** Whether the latest read of the stream did not fill {@link #in}. If so, another read would find nothing. */
    private boolean drained;

    /**
     * Creates a channel. The channel owns the unused stream from now on.
     *
     * @param engines function that creates an engine for this stream; called once
     */
    TlsChannel(SocketChannel stream, ChallengeResponse challenge, Supplier<SSLEngine> engines) {
        super(stream);
        this.challenge = challenge;
        this.engines = engines;
    }

    /** Begins TLS. Until the peer has authenticated, each direction has a buffer for one record only. */
    private void beginTls() throws SSLException {
        challenge = null;
        engine = engines.get();
        recordBytes = engine.getSession().getPacketBufferSize();
        in = ByteBuffer.allocate(recordBytes).limit(0);
        out = ByteBuffer.allocate(recordBytes).limit(0);
        plain = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize()).limit(0);
        engine.beginHandshake();
    }

    private void establish() {
        established = true;
        in = ByteBuffer.allocate(RECORDS * recordBytes).put(in).flip();
        out = ByteBuffer.allocate(RECORDS * recordBytes).limit(0);
    }

    /** Returns the channel to register with a selector. */
    public static SelectableChannel selectable(SocketChannel channel) {
        return channel instanceof TlsChannel tls ? tls.stream : channel;
    }

    /** Returns whether a read can return data although the stream has received none since the last read. */
    public boolean hasInput() {
        return plain.hasRemaining() || in.hasRemaining() && !starved;
    }

    /** Returns whether the peer has passed the {@link ChallengeResponse}. */
    public boolean isChallengePassed() {
        return challenge == null;
    }

    /**
     * Returns whether this process and the peer have authenticated each other. Before that, {@code write} accepts no
     * bytes.
     */
    public boolean isEstablished() {
        return established;
    }

    @Override
    public int read(ByteBuffer to) throws IOException {
        if (!handshake()) {
            return 0;
        }
        int begin = to.position();
        while (to.hasRemaining()) {
            if (plain.hasRemaining()) {
                take(to);
            } else if (!decrypt(to)) {
                boolean hasSomething = to.position() > begin;
                int read = hasSomething && drained ? 0 : fill(hasSomething);
                if (read <= 0) {
                    return read < 0 && !hasSomething ? -1 : to.position() - begin;
                }
            }
        }
        return to.position() - begin;
    }

    private void take(ByteBuffer to) {
        int bytes = Math.min(plain.remaining(), to.remaining());
        to.put(to.position(), plain, plain.position(), bytes);
        to.position(to.position() + bytes);
        plain.position(plain.position() + bytes);
    }

    /**
     * Decrypts a record into a buffer, or into {@link #plain} if the buffer is too small. Returns false if {@link #in}
     * contains no complete record.
     */
    private boolean decrypt(ByteBuffer to) throws IOException {
        starved = !in.hasRemaining();
        if (starved) {
            return false;
        }
        SSLEngineResult result = unwrap(to);
        if (result.getStatus() == Status.BUFFER_OVERFLOW) {
            plain.clear();
            try {
                result = unwrap(plain);
            } finally {
                plain.flip();
            }
        }
        if (result.getStatus() == Status.CLOSED) {
            throw new SSLException("TLS: the peer has closed the stream");
        }
        starved = result.getStatus() == Status.BUFFER_UNDERFLOW;
        if (result.getHandshakeStatus() != HandshakeStatus.NOT_HANDSHAKING) {
            answer();
        }
        return !starved;
    }

    /** Answers a key update, which a peer sends after 128 GiB. Both sides then continue with new keys. */
    private void answer() throws IOException {
        runTasks();
        if (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && flush()) {
            encrypt(NOTHING);
            flush(); // The next write sends the remaining bytes. The peer does not wait for them.
        }
    }

    private SSLEngineResult unwrap(ByteBuffer to) throws IOException {
        try {
            return engine.unwrap(in, to);
        } catch (SSLException e) {
            sendAlert();
            throw named(e);
        }
    }

    /** Returns an exception with a clearer text than the engine's exception, for bytes that do not authenticate. */
    private SSLException named(SSLException e) {
        return new SSLException("TLS: " + e.getMessage() + (established ? ALTERED : ""), e);
    }

    /** Sends the peer a TLS alert, without waiting. The alert may be sent in part or not at all. */
    private void sendAlert() {
        try {
            if (flush()) {
                while (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && encrypt(NOTHING) > 0) {
                    flush();
                }
            }
        } catch (IOException gone) {
            // The peer has closed the stream and needs no alert.
        }
    }

    /**
     * Reads more bytes into {@link #in}. If reading fails and {@code hasSomething} is true, the next call throws the
     * error, so that the caller can return the bytes that it already has.
     */
    private int fill(boolean hasSomething) throws IOException {
        in.compact();
        try {
            return stream.read(in);
        } catch (IOException e) {
            if (hasSomething) {
                return 0;
            }
            throw e;
        } finally {
            drained = in.hasRemaining();
            in.flip();
        }
    }

    @Override
    public int write(ByteBuffer from) throws IOException {
        if (!handshake() || !flush()) {
            return 0;
        }
        int begin = from.position();
        int known = Math.min(held, from.remaining());
        from.position(begin + known);
        held -= known;
        while (from.hasRemaining()) {
            int before = from.position();
            while (from.hasRemaining() && out.capacity() - out.limit() >= recordBytes) {
                encrypt(from);
            }
            if (!flush()) {
                held = from.position() - before;
                from.position(before);
                break;
            }
        }
        return from.position() - begin;
    }

    /** Encrypts a record and appends it to {@link #out}, which must have room. Returns the record's length in bytes. */
    private int encrypt(ByteBuffer from) throws IOException {
        int begin = out.position();
        out.position(out.limit()).limit(out.capacity());
        try {
            SSLEngineResult result = engine.wrap(from, out);
            if (result.getStatus() == Status.CLOSED && result.bytesProduced() == 0) {
                throw new SSLException("TLS: the stream is closed");
            }
            return result.bytesProduced();
        } catch (SSLException e) {
            throw named(e);
        } finally {
            out.limit(out.position()).position(begin);
        }
    }

    /** Sends the encrypted bytes in {@link #out}. Returns false if the operating system accepts only a part of them. */
    private boolean flush() throws IOException {
        if (out.hasRemaining()) {
            stream.write(out);
            if (out.hasRemaining()) {
                return false;
            }
        }
        out.clear().limit(0);
        return true;
    }

    private boolean handshake() throws IOException {
        try {
            return established || completeHandshake();
        } catch (SSLException e) {
            sendAlert();
            throw e;
        } catch (ProtocolException e) {
            throw e;
        } catch (IOException e) {
            // The exception may be caused by a reset of the stream. The peer's operating system resets the stream if
            // the peer refuses this side before the peer has read all bytes of this side.
            throw new IOException("TLS: " + e.getMessage() + " in the handshake" + SAME, e);
        }
    }

    private boolean completeHandshake() throws IOException {
        if (challenge != null) {
            if (!challenge.advance()) {
                return false;
            }
            beginTls();
        }
        while (!established) {
            if (out.hasRemaining() && !flush()) {
                return false;
            }
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> runTasks();
                case NEED_WRAP -> encrypt(NOTHING);
                case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                    plain.clear();
                    SSLEngineResult result = unwrap(plain);
                    plain.flip();
                    if (result.getStatus() == Status.CLOSED) {
                        throw new SSLException("TLS: the peer has closed the stream in the handshake");
                    }
                    if (result.getStatus() == Status.BUFFER_UNDERFLOW) {
                        int read = fill(false);
                        if (read < 0) {
                            throw new EOFException("the peer closed the stream");
                        }
                        if (read == 0) {
                            return false;
                        }
                    }
                }
                default -> establish();
            }
        }
        return true;
    }

    private void runTasks() {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }
}
