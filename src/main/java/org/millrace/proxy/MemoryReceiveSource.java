package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException.DisagreementException;

/**
 * Source of steps to receive, for a device without announced operations. The headers of the peer's frames determine the
 * steps. Data of protocol Simple is received directly into its slot, and lines are received through
 * {@link ArrivingFrames}.
 */
final class MemoryReceiveSource implements ReceiveStepSource {

    private final ConnectionName name;
    private final ConnectionLayout layout;
    private final SlotBuffers buffers;
    private final ArrivingFrames arriving;
    private long expected;
    private long step;
    private long end;
    private long size;
    private Protocol protocol;

    /**
     * @param staging    region with the length and the layout of the LL and LL128 buffers together
     * @param wholeWords whether the network stores whole words, see {@link FrameReceiver}
     * @param firstStep  step of the first frame
     */
    MemoryReceiveSource(ConnectionName name, SlotBuffers buffers, MemoryRegion staging, boolean wholeWords,
            long firstStep) {
        this.name = name;
        this.layout = buffers.layout();
        this.buffers = buffers;
        this.arriving = new ArrivingFrames(buffers, staging, wholeWords);
        this.expected = firstStep;
    }

    @Override
    public boolean admits(FrameHeader header) {
        step = StepHeader.step(header);
        end = StepHeader.end(header);
        size = header.payloadBytes();
        long protocolId = StepHeader.protocol(header);
        boolean known = protocolId >= 0 && protocolId <= Protocol.SIMPLE.id()
                && !(buffers.simpleOnDevice() && protocolId == Protocol.LL128.id());
        // A frame may begin a few steps after the previous frame, because the peer's device rounds up the first step
        // of an operation. This rank's device rounds up the first step in the same way.
        boolean inSequence = step - expected >= 0 && step - expected < ConnectionLayout.SLOTS
                && end - step >= (size > 0 ? 1 : 0) && end - expected > 0 && end - step <= ConnectionLayout.SLOTS;
        if (!known || !inSequence || size > room((int) protocolId)) {
            throw new DisagreementException(name, name + ": unexpected frame: steps " + step + " to " + end
                    + ", protocol " + protocolId + ", " + size + " bytes; " + "expected step " + expected
                    + " or a few after it, protocol 0 to 2, no more than fits. Do the ranks run the same operations?");
        }
        protocol = Protocol.of((int) protocolId);
        return true;
    }

    private long room(int protocolId) {
        Protocol of = Protocol.of(protocolId);
        return of == Protocol.SIMPLE ? layout.bufferBytes(of) - ConnectionLayout.slot(step) * layout.slotBytes(of)
                : layout.slotBytes(of);
    }

    @Override
    public void receive(FrameReceiver receiver) {
        receiver.accept(arriving.region(protocol), buffers.slotOffset(protocol, step));
    }

    @Override
    public MemoryRegion slotRegion() {
        return buffers.region(protocol);
    }

    @Override
    public long slotOffset() {
        return buffers.slotOffset(protocol, step);
    }

    @Override
    public void taken() {
        arriving.taken(protocol, step, size);
        expected = end;
    }

    @Override
    public void arrived() {
        arriving.arrived();
    }

    /**
     * Returns whether no frame is being received. A frame counts only after its header has arrived, because this rank
     * learns of a frame from the header.
     */
    @Override
    public boolean drained() {
        return arriving.isEmpty();
    }
}
