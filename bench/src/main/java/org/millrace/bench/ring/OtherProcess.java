package org.millrace.bench.ring;

import java.io.File;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A ring's other side in a separate process that maps the same file. */
public final class OtherProcess implements OtherSide {

    private static final Duration DEADLINE = Duration.ofSeconds(30);

    private final MemorySegment memory;
    private final RingCommands commands;
    private final Process process;
    private long number;

    private OtherProcess(MemorySegment memory, Process process) {
        this.memory = memory;
        this.commands = new RingCommands(memory);
        this.process = process;
    }

    /**
     * Starts the process.
     *
     * @param java      command that starts a JVM with this program. Arguments follow
     * @param directory directory of the file, which is deleted once both have mapped it
     * @return the process, ready
     * @throws IOException if it does not start
     */
    public static OtherProcess start(List<String> java, Path directory) throws IOException {
        Path file = Files.createTempFile(directory, "millrace-bench-ring", null);
        try {
            MemorySegment memory = map(file, true);
            List<String> command = new ArrayList<>(java);
            command.addAll(List.of("ring-side", file.toString()));
            OtherProcess other = new OtherProcess(memory,
                    new ProcessBuilder(command).redirectErrorStream(true)
                            .redirectOutput(new File("/dev/null"))
                            .start());
            other.commands.command(++other.number, 0, 0);
            other.await();
            return other;
        } finally {
            Files.deleteIfExists(file);
        }
    }

    static MemorySegment map(Path file, boolean extend) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            if (!extend && channel.size() < RingCommands.FILE_BYTES) {
                throw new IOException(file + " has " + channel.size() + " bytes, not " + RingCommands.FILE_BYTES);
            }
            return channel.map(MapMode.READ_WRITE, 0, RingCommands.FILE_BYTES, Arena.global());
        }
    }

    /** {@return the ring between the two processes} */
    public RingMemory ring() {
        return new RingMemory(memory);
    }

    @Override
    public void start(RingRole role, long count) {
        commands.command(++number, RingRole.ALL.indexOf(role), count);
    }

    @Override
    public long await() {
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        while (commands.doneAcquire() != number) {
            Thread.onSpinWait();
            if (System.nanoTime() - deadline > 0 || !process.isAlive() && commands.doneAcquire() != number) {
                throw new IllegalStateException(
                        process.isAlive() ? "the other process has not come back for " + DEADLINE.toSeconds() + " s"
                                : "the other process ended with status " + process.exitValue());
            }
        }
        return commands.result();
    }

    @Override
    public void close() {
        commands.command(++number, RingCommands.END, 0);
        try {
            if (!process.waitFor(DEADLINE.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
