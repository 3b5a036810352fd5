package org.millrace.bench.ring;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Cores;

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
     * @return the process, ready
     * @throws IOException if it does not start
     */
    public static OtherProcess start() throws IOException {
        Path file = LineMemory.sharedFile();
        try {
            MemorySegment memory = map(file, true);
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
            ManagementFactory.getRuntimeMXBean()
                    .getInputArguments()
                    .stream()
                    .filter(argument -> !argument.startsWith("-XX:CompileCommand")) // JMH's hints for its own classes
                    .forEach(command::add);
            String library = System.getProperty(CLibrary.PROPERTY);
            if (library != null) {
                command.add("-D" + CLibrary.PROPERTY + "=" + library);
            }
            command.addAll(List.of("-cp", System.getProperty("java.class.path"), RingSideProcess.class.getName(),
                    file.toString()));
            Cores.ofThisProcess().unpin(); // the started process would inherit the binding to one core
            OtherProcess other = new OtherProcess(memory,
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(Redirect.DISCARD).start());
            Cores.ofThisProcess().pinToFirst();
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

    @Override
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
