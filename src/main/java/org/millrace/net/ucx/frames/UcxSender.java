package org.millrace.net.ucx.frames;

import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.ucx.worker.UcxWorkers;

/**
 * The sending end of a connection over UCX. {@link #offer} notes a frame, with a copy of its header and of a short
 * payload; {@link #progress} gives what was noted to UCX. A frame is complete when UCX has read its payload: for a long
 * one that is when the receiver has it.
 */
public final class UcxSender implements FrameSender {

    private final SendEnd end;

    /** A sender whose hello goes over a connection that was made, to be closed with this. */
    public UcxSender(OpenResources network, String name, FrameSender found, Network finder, UcxWorkers workers) {
        end = new SendEnd(network, name, found, finder, workers);
        network.opened(end, this::close);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        end.checkOpen();
        return end.offer(header, region, offset);
    }

    @Override
    public int progress() {
        end.checkOpen();
        int work = end.lookAtPeer();
        if (end.hasFailed() || !end.tryEnter()) {
            return work;
        }
        try {
            return work + end.advance();
        } finally {
            end.worker().leave();
        }
    }

    @Override
    public long framesCompleted() {
        return end.completed();
    }

    @Override
    public void close() {
        end.close(end::sayGoodbye);
    }

    @Override
    public void abort() {
        end.close(end::abort);
    }

    @Override
    public String peer() {
        return end.peer();
    }

    @Override
    public void blame(String lostPeer) {
        end.blame(lostPeer);
    }

    @Override
    public String toString() {
        return end.toString();
    }
}
