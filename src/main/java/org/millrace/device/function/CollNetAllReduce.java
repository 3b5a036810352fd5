package org.millrace.device.function;

import java.lang.foreign.MemorySegment;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;

/**
 * An all-reduce that the network carries out: the block fills slots with this rank's elements, one step each, and
 * empties the slots in which results come. It sends ahead as far as there are slots.
 */
public final class CollNetAllReduce implements Block {

    private final SendPort sendPort;
    private final ReceivePort receivePort;
    private final MemorySegment input;
    private final MemorySegment output;
    private final long bytes;
    private final long stepBytes;
    private long sent;
    private long received;

    /**
     * A block that has not begun.
     *
     * @param sendPort     to the network
     * @param receivePort  from it
     * @param input        this rank's elements
     * @param output       where the result goes; may be the input
     * @param bytes        of each
     * @param elementBytes of one element
     */
    public CollNetAllReduce(SendPort sendPort, ReceivePort receivePort, MemorySegment input, MemorySegment output,
            long bytes, int elementBytes) {
        this.sendPort = sendPort;
        this.receivePort = receivePort;
        this.input = input;
        this.output = output;
        this.bytes = bytes;
        this.stepBytes = stepBytes(sendPort.slotBytes(), elementBytes);
    }

    private static long stepBytes(long slotBytes, int elementBytes) {
        return slotBytes / elementBytes * elementBytes;
    }

    /**
     * How many steps an all-reduce takes.
     *
     * @param bytes        of the operand
     * @param slotBytes    of a slot
     * @param elementBytes of an element
     * @return the steps
     */
    public static long steps(long bytes, long slotBytes, int elementBytes) {
        long step = stepBytes(slotBytes, elementBytes);
        return (bytes + step - 1) / step;
    }

    @Override
    public void begin() {
        // steps are not rounded: each operation begins where the one before ended
    }

    @Override
    public int progress() {
        int moved = 0;
        while (sent < bytes && sendPort.hasRoom(1)) {
            long length = Math.min(stepBytes, bytes - sent);
            sendPort.announce(length);
            MemorySegment.copy(input, sent, sendPort.buffer(), sendPort.slotOffset(), length);
            sendPort.post(1);
            sent += length;
            moved++;
        }
        while (received < bytes && receivePort.hasData(1)) {
            long length = Math.min(stepBytes, bytes - received);
            MemorySegment.copy(receivePort.buffer(), receivePort.slotOffset(), output, received, length);
            receivePort.release(1);
            received += length;
            moved++;
        }
        return moved;
    }

    @Override
    public boolean done() {
        return received == bytes;
    }

    @Override
    public String waitingFor() {
        return received < sent ? receivePort.toString() : sendPort.toString();
    }
}
