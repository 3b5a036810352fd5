package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsChannel;

/**
 * What arrives on one TCP stream. A read that finds nothing is a system call too, and a thread that polls many streams
 * makes most of its calls so: a stream on which nothing comes for a while is looked at together with the thread's other
 * streams ({@link ReadPoll}), and read when it has something. One thread at a time.
 */
final class StreamInput {

    /** Reads in a row that found nothing, after which the stream is looked at together with others. */
    static final int PATIENCE = 64;

    private final SocketChannel channel;
    /** The same, if it is under TLS: it may hold what came before. */
    private final @Nullable TlsChannel tls;
    /** That of the thread which had patience; null as long as there is none. */
    private volatile @Nullable ReadPoll poll;
    private int fruitless;
    private long reads;
    /** The round of the poll in which this stream was last asked for: the poll's. */
    long round;
    /** The round in which it was last found to have something: the poll's. */
    long readyIn = -1;

    public StreamInput(SocketChannel channel) {
        this.channel = channel;
        tls = channel instanceof TlsChannel encrypted ? encrypted : null;
    }

    /** What a selector looks at. */
    SelectableChannel channel() {
        return TlsChannel.selectable(channel);
    }

    /**
     * Reads once what has arrived, into what is left of a buffer.
     *
     * @return how many bytes; 0 if none has arrived; -1 at the end of the stream
     */
    public int read(ByteBuffer to) throws IOException {
        return read(to, false);
    }

    /**
     * Reads once what has arrived, into what is left of a buffer.
     *
     * @param more whether there may be more, as this pass has just read something: it costs no second look
     * @return how many bytes; 0 if none has arrived; -1 at the end of the stream
     */
    public int read(ByteBuffer to, boolean more) throws IOException {
        ReadPoll joined = poll;
        if (joined != null && !more && (tls == null || !tls.hasInput()) && !joined.mayRead(this)) {
            return 0;
        }
        int read = channel.read(to);
        reads++;
        if (read != 0) {
            fruitless = 0;
        } else if (joined == null && ++fruitless == PATIENCE) {
            poll = ReadPoll.ofThisThread();
            poll.join(this);
        }
        return read;
    }

    /** How many calls have read, those that found nothing among them. */
    long reads() {
        return reads;
    }

    /** Before the stream is closed. Safe from any thread, and more than once. */
    public void leave() {
        ReadPoll joined = poll;
        if (joined != null) {
            joined.leave(this);
        }
    }
}
