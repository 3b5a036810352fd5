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
 * A TCP stream under TLS. It reads and writes as a non-blocking channel does, and makes the handshake meanwhile, after
 * a {@link ChallengeResponse}: until then there is neither an engine nor a buffer. One thread at a time; any thread
 * closes it. The JDK's engine allocates as it goes.
 *
 * <p>
 * What was encrypted and is not with the kernel counts as not written: a caller offers the same bytes again, and they
 * are not encrypted a second time. So nothing is left behind when a caller has written all it has.
 *
 * <pre>
 *   write   caller's bytes ─▶ engine ─▶ out ─▶ stream          read   stream ─▶ in ─▶ engine ─▶ caller's buffer
 *                                                                                      └▶ plain, where that is small
 * </pre>
 */
public final class TlsChannel extends FilterSocketChannel {

    /** Records that one call of the kernel moves: 128 KiB of data. */
    private static final int RECORDS = 8;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);
    private static final String ALTERED = "; something between the two ends changes data, or one end is no rank";
    private static final String SAME =
            "; MILLRACE_TLS, and the secret or the certificates, must be the same on all ranks";

    private final Supplier<SSLEngine> engines;
    /** Null once it is done. */
    private @Nullable ChallengeResponse challenge;
    private SSLEngine engine;
    private int recordBytes;
    /** Arrived and still encrypted, ready to be read. */
    private ByteBuffer in = NOTHING;
    /** Encrypted and not sent, ready to be read. */
    private ByteBuffer out = NOTHING;
    /** Decrypted and not taken, ready to be read. */
    private ByteBuffer plain = NOTHING;
    /** How many of the caller's next bytes are in {@link #out} already. */
    private int held;
    private boolean established;
    /** A whole record is wanted of which only a part is here. */
    private boolean starved = true;
    /** The last read brought less than there was room for: another would find nothing, for the price of a call. */
    private boolean drained;

    /**
     * Takes a stream over, of which nothing has been read or written.
     *
     * @param engines makes one for this stream, once
     */
    TlsChannel(SocketChannel stream, ChallengeResponse challenge, Supplier<SSLEngine> engines) {
        super(stream);
        this.challenge = challenge;
        this.engines = engines;
    }

    /** One record each way, as long as no peer has shown who it is. */
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

    /** What a selector takes in place of a channel. */
    public static SelectableChannel selectable(SocketChannel channel) {
        return channel instanceof TlsChannel tls ? tls.stream : channel;
    }

    /** Whether a read may find something though nothing has arrived since. */
    public boolean hasInput() {
        return plain.hasRemaining() || in.hasRemaining() && !starved;
    }

    /** Whether the other end has shown what a {@link ChallengeResponse} asks for. */
    public boolean isChallengePassed() {
        return challenge == null;
    }

    /** Whether both ends have shown who they are; until then writes write nothing. */
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

    /** Decrypts a record into a buffer, or into {@link #plain} if it is too small; false if none is whole. */
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

    /** The peer wants new keys, as it does after 128 GiB: both go on with others. */
    private void answer() throws IOException {
        runTasks();
        if (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && flush()) {
            encrypt(NOTHING);
            flush(); // what is left goes with what is written next; the peer does not wait for it
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

    /** What the engine says of bytes that do not fit is a word of its own. */
    private SSLException named(SSLException e) {
        return new SSLException("TLS: " + e.getMessage() + (established ? ALTERED : ""), e);
    }

    /** Tells the peer what is wrong, as far as that needs no waiting. */
    private void sendAlert() {
        try {
            if (flush()) {
                while (engine.getHandshakeStatus() == HandshakeStatus.NEED_WRAP && encrypt(NOTHING) > 0) {
                    flush();
                }
            }
        } catch (IOException gone) {
            // It knows already.
        }
    }

    /** Reads on; an end with an error is for the next call to tell if this one has something. */
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

    /** Encrypts a record behind what is in {@link #out}, where there must be room; returns its bytes. */
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

    /** Sends what is encrypted; false if the kernel takes no more. */
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
            // As who refuses it does: with a reset, if it has not read all.
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
