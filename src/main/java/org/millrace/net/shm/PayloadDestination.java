package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.net.Pages;

/**
 * Where the payload goes that a receiver is at: one place, or pages that it is spread over. It is filled in pieces, in
 * order, each from wherever the sender left it. One thread; for each frame anew.
 */
final class PayloadDestination {

    private MemorySegment memory = MemorySegment.NULL;
    /** Of the first byte, where the payload goes to one place. */
    private long offset;
    /** Where the payload is spread over; null if it goes to one place. */
    private @Nullable Pages pages;
    private int firstPage;

    /** It goes to one place; the caller has checked that it lies within the memory. */
    void set(MemorySegment to, long at) {
        memory = to;
        offset = at;
        pages = null;
    }

    /** It is spread over pages: one that does not lie within the memory is an {@link IndexOutOfBoundsException}. */
    void set(MemorySegment to, Pages over, int first) {
        memory = to;
        pages = over;
        firstPage = first;
    }

    /** Takes a piece out of the ring, behind so many bytes of the payload that are there. */
    void fill(RingSide.Consumer from, long received, long bytes) {
        Pages to = pages;
        if (to == null) {
            from.readPayload(memory, offset + received, bytes);
            return;
        }
        int pageBytes = to.bytesEach();
        for (long done = 0; done < bytes;) {
            long at = received + done;
            long part = Math.min(bytes - done, pageBytes - at % pageBytes);
            from.readPayload(memory, to.offset(firstPage, at), part);
            done += part;
        }
    }

    /** Names where a piece goes that is read in the sender's memory; returns how much of it there is room to name. */
    long name(PeerMemory reader, long received, long bytes) {
        Pages to = pages;
        if (to == null) {
            reader.add(memory, offset + received, bytes);
            return bytes;
        }
        int pageBytes = to.bytesEach();
        long named = 0;
        for (int parts = 0; parts < PeerMemory.MAX_PARTS && named < bytes; parts++) {
            long at = received + named;
            long part = Math.min(bytes - named, pageBytes - at % pageBytes);
            reader.add(memory, Objects.checkFromIndexSize(to.offset(firstPage, at), part, memory.byteSize()), part);
            named += part;
        }
        return named;
    }

    /** Takes what is missing from the ring's file, where the sender moved it; returns how much that was. */
    long fillMoved(RingSide.Consumer from, long received, long missing) throws IOException {
        Pages to = pages;
        if (to == null) {
            from.readMoved(memory, offset + received, received, missing);
            return missing;
        }
        long part = Math.min(missing, to.bytesEach() - received % to.bytesEach());
        from.readMoved(memory, to.offset(firstPage, received), received, part);
        return part;
    }
}
