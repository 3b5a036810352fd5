package org.millrace.rehearsal;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.millrace.file.PrivateFile;
import org.millrace.foreign.Words;

/**
 * Records of a thread in a mapped file. The recording thread stores only into prepared memory. The recorder's thread
 * prepares memory in advance: it allocates blocks of the file and makes pages writable. The recording thread therefore
 * waits neither for a disk nor for pages that the operating system's write-back has made read-only. If the recorder's
 * thread is too slow, records are dropped and counted. The file is mapped as long as the process lives, and is accessed
 * by address.
 */
final class RecordFile {

    private static final int PAGE_BYTES = 4096;
    private static final int PAGE_RECORDS = PAGE_BYTES / RecordFormat.RECORD_BYTES;
    /** Maximum number of prepared bytes. They suffice for at least thirty milliseconds of recording. */
    private static final long AHEAD_BYTES = 4 << 20;
    /**
     * Number of bytes that one write prepares. One write of many pages takes a sixth of the time of separate writes.
     */
    private static final long BLOCK_BYTES = 256 << 10;
    private static final VarHandle READY = Words.field(MethodHandles.lookup(), "ready", long.class);

    private final @Nullable FileChannel channel;
    private final long header;
    private final long records;
    private final long capacity;
    private final long ahead;
    private final long blockRecords;
    /** Number of appended records. Only the recording thread accesses it. */
    private long count;
    private long lost;
    /**
     * Number of the first record without prepared memory. The recorder's thread writes it with release in
     * {@link #prepare}, and the recording thread reads it with acquire in {@link #append}, both through {@link #READY}.
     */
    private long ready;

    private RecordFile(@Nullable FileChannel channel, long header, long capacity) {
        this.channel = channel;
        this.header = header;
        this.records = header + RecordFormat.HEADER_BYTES;
        this.capacity = capacity;
        ahead = Math.min(AHEAD_BYTES / RecordFormat.RECORD_BYTES, capacity / 2);
        blockRecords = Math.min(BLOCK_BYTES / RecordFormat.RECORD_BYTES, Math.max(PAGE_RECORDS, ahead / 4));
    }

    /** {@return a new file with a header and at most the given number of bytes for records} */
    static RecordFile create(Path path, long bytes) throws IOException {
        FileChannel channel = PrivateFile.create(path, RecordFormat.HEADER_BYTES);
        long capacity = Math.max(2 * PAGE_RECORDS, Long.highestOneBit(bytes / RecordFormat.RECORD_BYTES));
        long header = channel.map(MapMode.READ_WRITE, 0,
                RecordFormat.HEADER_BYTES + capacity * RecordFormat.RECORD_BYTES, Arena.global()).address();
        RecordFile made = new RecordFile(channel, header, capacity);
        Words.MEMORY.set(ValueLayout.JAVA_INT, header + RecordFormat.VERSION_OFFSET, RecordFormat.VERSION);
        Words.MEMORY.set(ValueLayout.JAVA_INT, header + RecordFormat.RECORD_BYTES_OFFSET, RecordFormat.RECORD_BYTES);
        Words.MEMORY.set(ValueLayout.JAVA_LONG, header + RecordFormat.CAPACITY_OFFSET, capacity);
        // Release: publishes the other words of the header to readers of the file.
        Words.LONG.setRelease(Words.MEMORY, header + RecordFormat.MAGIC_OFFSET, RecordFormat.MAGIC);
        made.prepare();
        return made;
    }

    /** {@return a file that drops every record} */
    static RecordFile none() {
        return new RecordFile(null, Arena.global().allocate(RecordFormat.HEADER_BYTES, Long.BYTES).address(), 2);
    }

    /**
     * Appends a record, and overwrites the oldest record if the ring is full. Drops the record if its memory is not
     * prepared. One thread at a time.
     */
    void append(long head, long first, long second, long third, long fourth, long fifth, long sixth, long seventh) {
        // This acquire pairs with the release in prepare(): the memory of the records before READY is writable.
        if (count >= (long) READY.getAcquire(this)) {
            Words.LONG.setOpaque(Words.MEMORY, header + RecordFormat.LOST_OFFSET, ++lost);
            return;
        }
        long at = records + (count & capacity - 1) * RecordFormat.RECORD_BYTES;
        // Orders the previous store of the count before the stores of this record, which can overwrite the oldest
        // record. Pairs with the fence in RecordingReader.read().
        VarHandle.storeStoreFence();
        Words.LONG.setOpaque(Words.MEMORY, at, head);
        Words.LONG.setOpaque(Words.MEMORY, at + Long.BYTES, first);
        Words.LONG.setOpaque(Words.MEMORY, at + 2 * Long.BYTES, second);
        Words.LONG.setOpaque(Words.MEMORY, at + 3 * Long.BYTES, third);
        Words.LONG.setOpaque(Words.MEMORY, at + 4 * Long.BYTES, fourth);
        Words.LONG.setOpaque(Words.MEMORY, at + 5 * Long.BYTES, fifth);
        Words.LONG.setOpaque(Words.MEMORY, at + 6 * Long.BYTES, sixth);
        Words.LONG.setOpaque(Words.MEMORY, at + 7 * Long.BYTES, seventh);
        // Pairs with the acquire in prepare(). A reader in another process reads the count again after it has copied a
        // record.
        Words.LONG.setRelease(Words.MEMORY, header + RecordFormat.COUNT_OFFSET, ++count);
    }

    /** Prepares memory, in blocks of pages, for the records that will be appended next. Recorder's thread only. */
    void prepare() throws IOException {
        long wanted = (long) Words.LONG.getAcquire(Words.MEMORY, header + RecordFormat.COUNT_OFFSET) + ahead;
        for (long block = ready; block + blockRecords <= wanted; block += blockRecords) {
            long offset = (block & capacity - 1) * RecordFormat.RECORD_BYTES;
            long bytes = blockRecords * RecordFormat.RECORD_BYTES;
            // Allocates the block, because a store to unallocated bytes of a full disk would kill the process.
            if (block < capacity) {
                PrivateFile.fill(channel.position(RecordFormat.HEADER_BYTES + offset), bytes);
            }
            // The addition of 0 makes a page writable and does not change its content.
            for (long page = 0; page < bytes; page += PAGE_BYTES) {
                Words.LONG.getAndAdd(Words.MEMORY, records + offset + page, 0L);
            }
            READY.setRelease(this, block + blockRecords);
        }
    }
}
