package org.millrace.bench.ring;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.millrace.bench.measure.Cores;
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
     * @param arguments file that both processes map
     * @throws IOException if the file cannot be mapped
     */
    public static void main(String[] arguments) throws IOException {
        Cores.ofThisProcess().pinToSecond();
        MemorySegment memory = OtherProcess.map(Path.of(arguments[0]), false);
        RingCommands commands = new RingCommands(memory);
        RingMemory ring = new RingMemory(memory);
        Map<Long, Loop> loops = new HashMap<>();
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
            Loop loop = loops.computeIfAbsent(commands.role(), role -> RingRole.ALL.get((int) (long) role).loop(ring));
            commands.done(number, commands.count() == 0 ? 0 : loop.run(commands.count()));
            begin = System.nanoTime();
        }
    }
}
