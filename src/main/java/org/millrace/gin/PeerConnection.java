package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.OutboundFrames.OutboundFrame;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.PeerClosedException;
import org.millrace.net.check.FrameCheck;

/**
 * The connection to one peer, in both directions. A put completes when its source may be overwritten: its last frame
 * was sent, or its bytes were copied. A get completes when its bytes are written at this rank.
 */
final class PeerConnection extends GinPeer {

    private final FrameSender sender;
    private final OutboundFrames frames;
    private final FramePath framePath;
    private final DirectPath directPath;
    private final GetPath getPath;
    /** Path of the bytes of puts and of answers to gets: {@link #framePath}, or a path through a staging ring. */
    private FramePath bytesPath;
    private final GetAnswers answers = new GetAnswers();
    private final FrameDispatcher inbound;
    /** Number of settled frames of the peer that this rank last published to the peer. */
    private long publishedSettled;
    private boolean sendingOver;
    private boolean receivingOver;

    /**
     * Creates a peer over an established connection. The first frame, a hello, contains the rank of this process.
     */
    public PeerConnection(LocalRank rank, int peer, FrameSender sender, FrameReceiver receiver) {
        super(rank, peer);
        this.sender = check(rank, " -> rank " + peer, rank.options().depth()).of(sender);
        frames = new OutboundFrames(this.sender, rank.options().depth());
        framePath = new FramePath(rank, frames, null);
        directPath = new DirectPath(rank, peer, frames);
        getPath = new GetPath(rank, frames);
        bytesPath = framePath;
        inbound = new FrameDispatcher(rank, peer, check(rank, " <- rank " + peer, 1).of(receiver), getPath, answers);
        OutboundFrame hello = frames.next();
        GinHeader.hello(hello.header, rank.rank(), rank.ranks(), rank.options().chunkBytes());
        frames.add();
    }

    /**
     * Returns the check of the payloads of puts. Answers to gets are not checked, because other ranks may write the
     * source of a get during the transfer.
     *
     * @param frames maximum number of frames in flight; 1 for a receiver: two payloads may be written to the same
     *               bytes, so each payload is checked before the next frame is accepted
     */
    private static FrameCheck check(LocalRank rank, String direction, int frames) {
        return new FrameCheck(rank.options().check(), GinHeader.CHECKED, frames, true,
                header -> GinHeader.kind(header) == GinHeader.PUT,
                header -> "rank " + rank.rank() + direction + ", " + GinHeader.describe(header));
    }

    /** Allows the peer to use a staging ring from now on, for the bytes that the peer sends. */
    public void stageIn(StagingRing ring) {
        inbound.stage(new StagingRing.Reader(ring));
    }

    /**
     * Uses a staging ring from now on, for the bytes that this rank sends to the peer. The peer must have called
     * {@link #stageIn} before.
     */
    public void stageOut(StagingRing ring) {
        bytesPath = new FramePath(rank, frames, new StagingRing.Writer(ring, peer));
    }

    @Override
    public int progress(boolean quiet) {
        try {
            int work = send(quiet) + receive();
            if (inbound.settled() != publishedSettled) {
                publishSettled();
            }
            return work;
        } catch (ConnectionException lost) {
            throw new GinException("rank " + rank.rank() + " lost rank " + peer + ": " + lost.getMessage() + underWay(),
                    lost);
        }
    }

    @Override
    public void publishSettled() {
        publishedSettled = inbound.settled();
        rank.contexts().publishSettled(peer, publishedSettled);
    }

    private int send(boolean quiet) {
        if (sendingOver) {
            requireNothing();
            return 0;
        }
        try {
            int work = answers.send(frames, bytesPath);
            work += watch().pull(quiet);
            return work + frames.progress();
        } catch (PeerClosedException closed) {
            // This rank stops sending, but not receiving: frames that the peer sent before its close must still be
            // received.
            sendingOver = true;
            return 1;
        }
    }

    private int receive() {
        if (receivingOver) {
            return inbound.settle();
        }
        try {
            return inbound.progress();
        } catch (PeerClosedException closed) {
            receivingOver = true;
            sendingOver = true;
            return 1;
        }
    }

    /**
     * Called after the peer has closed the connection. Throws an exception if this rank still needs the peer: a frame
     * must still be sent, a get has no complete answer, or a queue contains a descriptor.
     */
    private void requireNothing() {
        answers.abandon();
        if (frames.owesPeer() && frames.listen()) {
            // The peer may have received the frames before its close, and its acknowledgements may still arrive.
            return;
        }
        if (frames.owesPeer() || receivingOver && !getPath.isEmpty() || isWanted()) {
            throw new GinException("rank " + rank.rank() + ": rank " + peer + " has closed its end" + underWay());
        }
    }

    private String underWay() {
        String oldest = describeOldest();
        return oldest == null ? "; nothing was in flight to it" : "; the oldest descriptor in flight to it: " + oldest;
    }

    @Override
    @Nullable
    Path choose(QueueDrain drain) {
        GinDescriptor descriptor = drain.current();
        if (descriptor.has(GinOp.GET)) {
            if (descriptor.size == 0) {
                return null;
            }
            return directPath.reaches(drain.source()) && drain.order.canCopy() ? directPath : getPath;
        }
        if (descriptor.has(GinOp.FLUSH)) {
            // A flush need not wait for gets, because a get completes only when its bytes are visible.
            return null;
        }
        if (descriptor.size == 0) {
            return descriptor.signals() ? framePath : null;
        }
        if (descriptor.has(GinOp.INLINE)) {
            return framePath;
        }
        return directPath.reaches(drain.target()) && drain.order.canCopy() ? directPath : bytesPath;
    }

    @Override
    public @Nullable String describeInbound() {
        return inbound.isSettled() ? null
                : "bytes or signals that rank " + peer + " has sent, which have not reached this rank's memory";
    }

    @Override
    public boolean isDrained() {
        return inbound.isSettled()
                && (sendingOver || frames.isEmpty() && getPath.isEmpty() && answers.isEmpty() && !isWanted());
    }

    @Override
    public void close(boolean failed) {
        try {
            if (failed) {
                sender.abort();
            } else {
                sender.close();
            }
        } finally {
            inbound.close();
        }
        // Not executed if close() throws, because the network may then still access staging buffers.
        frames.abandon();
        inbound.abandon();
    }
}
