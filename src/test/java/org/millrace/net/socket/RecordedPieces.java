package org.millrace.net.socket;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.millrace.net.FrameHeader;

/** Data that a sender of several rails writes to a stream, as a source of fuzz inputs. */
public final class RecordedPieces {

    public static final int HEADER_BYTES = PieceFormat.BYTES;

    private RecordedPieces() {}

    /** Returns the number of bytes after a piece's header. */
    public static int length(ByteBuffer header) {
        return PieceFormat.length(header, 0);
    }

    /** Returns whether a stream may begin with this header, given the maximum number of frames in flight. */
    public static boolean mayBegin(ByteBuffer header, Pieces pieces, int framesInFlight) {
        if (HeaderFormat.isShutdown(header, 0)) {
            return true;
        }
        int offset = PieceFormat.offset(header, 0);
        return PieceFormat.isPiece(header, 0) && PieceFormat.frame(header, 0) >= 0
                && PieceFormat.frame(header, 0) < framesInFlight && offset % pieces.bytes() == 0
                && offset + (long) length(header) <= HeaderFormat.payloadBytes(header, 0);
    }

    /** Returns the headers of three streams. Each stream contains two frames and a shutdown message. */
    public static List<byte[]> of(Pieces pieces) {
        List<byte[]> all = new ArrayList<>();
        for (int payload : new int[] {100, 2 * pieces.bytes(), 3 * pieces.bytes() - 5}) {
            ByteBuffer bytes = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN);
            int at = 0;
            for (long frame = 0; frame < 2; frame++) {
                FrameHeader header = new FrameHeader();
                header.payloadBytes(payload);
                for (int offset = 0; offset < payload; offset += pieces.bytes()) {
                    int length = Math.min(pieces.bytes(), payload - offset);
                    PieceFormat.encode(HeaderFormat.TYPE_PIECE, header, frame, offset, length, bytes, at);
                    at += PieceFormat.BYTES;
                }
            }
            PieceFormat.encodeShutdown(2, null, bytes, at);
            byte[] stream = new byte[at + PieceFormat.BYTES];
            bytes.get(0, stream);
            all.add(stream);
        }
        return all;
    }
}
