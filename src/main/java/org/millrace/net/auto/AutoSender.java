package org.millrace.net.auto;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Railed;

/** A sender of one of the two networks, which takes regions of both. */
final class AutoSender implements FrameSender, Railed {

    private final FrameSender sender;
    private final boolean overShm;

    AutoSender(FrameSender sender, boolean overShm) {
        this.sender = sender;
        this.overShm = overShm;
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        return sender.offer(header, AutoNetwork.part(region, overShm), offset);
    }

    @Override
    public int progress() {
        return sender.progress();
    }

    @Override
    public long framesCompleted() {
        return sender.framesCompleted();
    }

    @Override
    public int rails() {
        return sender instanceof Railed railed ? railed.rails() : 1;
    }

    @Override
    public void cutRail(int rail) {
        if (sender instanceof Railed railed) {
            railed.cutRail(rail);
        }
    }

    @Override
    public void close() {
        sender.close();
    }

    @Override
    public void abort() {
        sender.abort();
    }

    @Override
    public String toString() {
        return sender.toString();
    }
}
