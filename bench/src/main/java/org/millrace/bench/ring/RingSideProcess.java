package org.millrace.bench.ring;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;

/**
 * The other process of a ring. It executes commands, and exits when no command arrives for long, or its parent has
 * ended.
 */
public final class RingSideProcess {

    private static final Duration IDLE_DEADLINE = Duration.ofSeconds(60);
    private static final int LOOK_INTERVAL = 1 << 20;

    private RingSideProcess() {}

    /**
     * Serves commands.
     *
     * @param file    file that both processes map
     * @param library the comparators, null if there are none
     * @throws IOException if the file cannot be mapped
     */
    public static void serve(Path file, Path library) throws IOException {
        MemorySegment memory = OtherProcess.map(file, false);
        RingCommands commands = new RingCommands(memory);
        CLibrary c = CLibrary.load(library);
        RingMemory ring = new RingMemory(memory);
        List<Loop> loops = RingRole.ALL.stream().map(role -> role.loop(ring, c)).toList();
        ProcessHandle parent = ProcessHandle.current().parent().orElseThrow();
        long number = 0;
        long begin = System.nanoTime();
        for (int look = 1;; look++) {
            long commanded = commands.commandedAcquire();
            if (commanded == number) {
                Thread.onSpinWait();
                if (look % LOOK_INTERVAL == 0
                        && (!parent.isAlive() || System.nanoTime() - begin > IDLE_DEADLINE.toNanos())) {
                    return;
                }
                continue;
            }
            number = commanded;
            if (commands.role() == RingCommands.END) {
                return;
            }
            commands.done(number, commands.count() == 0 ? 0 : loops.get((int) commands.role()).run(commands.count()));
            begin = System.nanoTime();
        }
    }
}
