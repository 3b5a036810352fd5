package org.millrace.trace;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;

/**
 * A file that is mapped piece by piece as it grows. All bytes of a piece are allocated before the piece is mapped.
 * Otherwise the file system might run out of room later, and a store to a page without a block would end the process.
 */
final class TraceFile {

    private final Path path;
    private final FileChannel channel;
    private final long header;

    private TraceFile(Path path, FileChannel channel) throws IOException {
        this.path = path;
        this.channel = channel;
        this.header = map(0, TraceLayout.HEADER_BYTES);
    }

    /** Creates this process's file, which other users' processes cannot read. */
    static TraceFile create(Path directory) throws IOException {
        Path path = directory.resolve(FileName.ours(new SecureRandom().nextLong(), FileName.TRACE).toString());
        try {
            return new TraceFile(path, PrivateFile.create(path, TraceLayout.HEADER_BYTES));
        } catch (IOException | RuntimeException e) {
            Files.deleteIfExists(path);
            throw e;
        }
    }

    Path path() {
        return path;
    }

    long header() {
        return header;
    }

    /** Appends zeros to the file and maps them. Returns the address of the mapping. */
    long grow(long bytes) throws IOException {
        long end = channel.size();
        ByteBuffer zeros = ByteBuffer.allocateDirect(TraceLayout.BLOCK_BYTES);
        try {
            for (long at = end; at < end + bytes;) {
                zeros.clear().limit((int) Math.min(zeros.capacity(), end + bytes - at));
                at += channel.write(zeros, at);
            }
        } catch (IOException e) {
            channel.truncate(end);
            throw e;
        }
        return map(end, bytes);
    }

    /**
     * Maps a part of the file. The mapping lives as long as the process, because the threads of the process may write
     * to the file until they end.
     */
    private long map(long offset, long bytes) throws IOException {
        return channel.map(MapMode.READ_WRITE, offset, bytes, Arena.global()).address();
    }
}
