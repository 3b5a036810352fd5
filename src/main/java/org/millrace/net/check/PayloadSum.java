package org.millrace.net.check;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver.Pages;
import org.millrace.net.MemoryRegion;

/**
 * Computes checksums of payloads in regions. A checksum (sum) is the CRC-32C of the payload, or 1 if the CRC-32C is 0.
 * The value 0 in a header means that the frame has no sum. This class keeps a buffer over the region of the newest
 * payload, so that payloads of one region cause no allocation. Used by one thread.
 */
final class PayloadSum {

    /** Value in a header that contains no sum. */
    static final int NONE = 0;
    /** Maximum length in bytes of a buffer over a region. A {@link ByteBuffer} has at most 2 GiB - 1. */
    private static final long VIEW_BYTES = 1L << 30;

    private final CRC32C crc = new CRC32C();
    private @Nullable MemoryRegion region;
    private @Nullable ByteBuffer view;
    private long viewOffset;

    /** {@return the sum of a payload of 1 byte or more, never {@link #NONE}} */
    int of(MemoryRegion of, long offset, long bytes) {
        crc.reset();
        add(of, offset, bytes);
        return value();
    }

    /** Returns the sum of a payload that lies in consecutive pages. */
    int of(Pages pages, int first, long bytes) {
        crc.reset();
        for (long at = 0; at < bytes; at += pages.bytesEach()) {
            add(pages.region(), pages.offset(first, at), Math.min(pages.bytesEach(), bytes - at));
        }
        return value();
    }

    private int value() {
        int sum = (int) crc.getValue();
        return sum == NONE ? 1 : sum;
    }

    private void add(MemoryRegion of, long offset, long bytes) {
        long end = offset + bytes;
        for (long at = offset; at < end;) {
            ByteBuffer bytesAt = viewOf(of, at);
            long limit = Math.min(end - viewOffset, bytesAt.capacity());
            bytesAt.limit((int) limit).position((int) (at - viewOffset));
            crc.update(bytesAt);
            at = viewOffset + limit;
        }
    }

    /** Returns a buffer over a part of the region. This part contains the byte at the given offset. */
    private ByteBuffer viewOf(MemoryRegion of, long at) {
        ByteBuffer current = view;
        if (current != null && of == region && at >= viewOffset && at - viewOffset < current.capacity()) {
            return current;
        }
        MemorySegment segment = of.segment();
        viewOffset = at - at % VIEW_BYTES;
        ByteBuffer made =
                segment.asSlice(viewOffset, Math.min(VIEW_BYTES, segment.byteSize() - viewOffset)).asByteBuffer();
        region = of;
        view = made;
        return made;
    }
}
