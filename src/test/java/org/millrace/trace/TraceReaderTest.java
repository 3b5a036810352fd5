package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;

class TraceReaderTest {

    private static final long CHANGED = 77;

    @TempDir
    Path directory;

    /**
     * The reader takes the reference time before it reads a trace's first byte, so the trace may contain newer data.
     */
    @Test
    void everythingIsReadAfterTheReferenceTime() throws IOException {
        Path file = directory.resolve(FileName.ours(1, FileName.TRACE).toString());
        ByteBuffer header = ByteBuffer.allocate(TraceLayout.HEADER_BYTES).order(ByteOrder.nativeOrder());
        header.putLong(TraceLayout.MAGIC_OFFSET, TraceLayout.MAGIC)
                .putInt(TraceLayout.VERSION_OFFSET, TraceLayout.VERSION)
                .putInt(TraceLayout.HEADER_BYTES_OFFSET, TraceLayout.HEADER_BYTES)
                .putInt(TraceLayout.BLOCK_BYTES_OFFSET, TraceLayout.BLOCK_BYTES);
        Files.write(file, header.array());
        TracedProcess read = TraceReader.read(file, () -> {
            header.putLong(TraceLayout.HEARTBEAT_OFFSET, CHANGED);
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.write(header.duplicate().position(0), 0);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return CHANGED - 1;
        });
        assertEquals(CHANGED - 1, read.read());
        assertEquals(CHANGED, read.heartbeat());
    }
}
