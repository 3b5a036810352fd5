package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.Protocol;
import org.millrace.device.LineFormat.Piece;

/**
 * The primitives of protocols LL and LL128. A chunk is one step. The receiver consumes a chunk when all its lines have
 * arrived. The sender posts the size of a chunk before it writes the data.
 *
 * <p>
 * Received data is copied from its lines to an array of this thread. The array holds one piece of a chunk. The elements
 * are combined in the array, and then written to lines or to the output. Arithmetic on arrays is fast: the elements are
 * adjacent, and the JVM knows that two arrays do not overlap.
 */
final class LinePrimitives extends Primitives {

    /**
     * Size of a piece in bytes. A line of LL has 8 data bytes, and a unit of LL128 has 1920. The size is a multiple of
     * both numbers.
     */
    private static final int PIECE_BYTES = 2 * 1920;
    private static final Piece ZEROS = Piece.of(PIECE_BYTES);
    private static final ThreadLocal<Piece[]> PIECES =
            ThreadLocal.withInitial(() -> new Piece[] {Piece.of(PIECE_BYTES), Piece.of(PIECE_BYTES)});

    private final LineFormat format;
    private final Protocol protocol;

    private long bytes;
    private boolean complete = true;

    LinePrimitives(LineFormat format, ReceivePort[] from, SendPort[] to, BlockMemory memory) {
        super(from, to, memory);
        this.format = format;
        this.protocol = format.protocol();
    }

    /** Does not round up the step of any connection, because each chunk is one step. */
    @Override
    public void enter() {
        // The connections continue from their current steps.
    }

    @Override
    public void begin(int primitiveKind, long inputElement, long outputElement, long elementCount) {
        set(primitiveKind, inputElement, outputElement);
        bytes = Math.max(elementCount, 0) * elementBytes;
        complete = false;
    }

    @Override
    public boolean complete() {
        return complete;
    }

    @Override
    public int progress() {
        if (complete || waitedFor() != null) {
            return 0;
        }
        long lineBytes = format.lineBytes(bytes);
        for (int i = 0; i < sends; i++) {
            to[i].postSize(format.postedBytes(to[i].slotBytes(protocol), lineBytes, to[i].step()));
        }
        Piece[] pieces = PIECES.get();
        for (long done = 0; done < bytes; done += PIECE_BYTES) {
            move(pieces[0], pieces[1], done, (int) Math.min(PIECE_BYTES, bytes - done));
        }
        for (int i = 0; i < sends; i++) {
            finish(to[i], lineBytes);
        }
        for (int i = 0; i < receives; i++) {
            from[i].release(1);
        }
        complete = true;
        return 1;
    }

    @Override
    @Nullable
    Port waitedFor() {
        long lineBytes = format.lineBytes(bytes);
        for (int i = 0; i < receives; i++) {
            if (!from[i].hasLines(protocol, lineBytes)) {
                return from[i];
            }
        }
        for (int i = 0; i < sends; i++) {
            if (!to[i].hasRoom(1)) {
                return to[i];
            }
        }
        return null;
    }

    private void move(Piece into, Piece more, long done, int length) {
        MemorySegment result = into.elements();
        MemorySegment other = more.elements();
        long lineAt = format.lineBytes(done);
        int count = length / elementBytes;
        for (int i = 0; i < receives; i++) {
            Piece received = i == 0 ? into : more;
            format.unpack(from[i].lines(), from[i].linesOffset(protocol) + lineAt, received, length);
            boolean last = (kind & LAST) != 0 && i == receives - 1;
            if (i > 0) {
                memory.among().reduce(other, 0, result, 0, result, 0, count, last);
            } else if ((kind & INPUT) != 0) {
                memory.own().reduce(memory.input(), inputOffset + done, result, 0, result, 0, count, last);
            }
        }
        if (receives == 0) {
            memory.own().copy(memory.input(), inputOffset + done, result, 0, count);
        }
        for (int i = 0; i < sends; i++) {
            format.pack(into, length, to[i].lines(), to[i].linesOffset(protocol) + lineAt, to[i].step());
        }
        if ((kind & OUTPUT) != 0) {
            MemorySegment.copy(result, 0, memory.output(), outputOffset + done, length);
        }
    }

    private void finish(SendPort port, long lineBytes) {
        long posted = format.postedBytes(port.slotBytes(protocol), lineBytes, port.step());
        for (long at = lineBytes; at < posted; at += format.lineBytes(PIECE_BYTES)) {
            int left = (int) Math.min(PIECE_BYTES, format.dataCapacity(posted - at));
            format.pack(ZEROS, left, port.lines(), port.linesOffset(protocol) + at, port.step());
        }
        if (format.movesTail()) {
            port.post(1);
        } else {
            port.passLines();
        }
    }
}
