package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.DataType;
import org.millrace.cli.MappedProvider;
import org.millrace.cli.run.RunDeadline;

class OperandMemoryTest {

    // an operand of this size is copied to the device in more than two parts
    private static final long COUNT = (9L << 20) / 4 + 10;
    private static final long BYTES = COUNT * Float.BYTES;

    private static final List<CollectiveCall.Part> WHOLE = List.of(CollectiveCall.Part.reduced(0, COUNT));

    @TempDir
    private Path directory;

    @Test
    void everyElementIsFilledPoisonedAndChecked() {
        RandomOperands operands = RandomOperands.of(42, 0, false);
        Reference reference = Reference.of(DataType.FLOAT32, Reduction.SUM, 1, operands);
        try (Arena arena = Arena.ofConfined();
                Communicator alone = new MappedProvider().join("file:" + directory.resolve("rendezvous"), 0, 1,
                        Map.of(), CommunicatorListener.STANDARD_ERROR)) {
            OperandMemory memory = new OperandMemory(alone.device(), alone.device().newStream(),
                    RunDeadline.after(Duration.ofMinutes(1)), arena);
            MemorySegment more = alone.device().allocate(BYTES + 4, arena);
            MemorySegment device = more.asSlice(0, BYTES);
            more.setAtIndex(ValueLayout.JAVA_FLOAT, COUNT, 7);

            memory.fill(device, reference, 0);
            assertEquals(0, memory.countWrong(device, reference, WHOLE), "what went in is the sum of one rank");
            assertEquals(7, more.getAtIndex(ValueLayout.JAVA_FLOAT, COUNT), "nothing behind the operand is touched");
            device.setAtIndex(ValueLayout.JAVA_FLOAT, COUNT - 1, 0);
            device.setAtIndex(ValueLayout.JAVA_FLOAT, (4 << 20) / 4, 0);
            assertEquals(2, memory.countWrong(device, reference, WHOLE));
            List<CollectiveCall.Part> halves = List.of(CollectiveCall.Part.copied(0, 0, COUNT / 2),
                    CollectiveCall.Part.copied(0, COUNT / 2, COUNT - COUNT / 2));
            assertEquals(2, memory.countWrong(device, reference, halves), "copies are compared too");
            assertEquals(COUNT / 2,
                    memory.countWrong(device, reference, List.of(CollectiveCall.Part.copied(0, 1, COUNT / 2))),
                    "one place off");
            memory.poison(device);
            assertEquals(COUNT, memory.countWrong(device, reference, WHOLE), "what was right before is poisoned");
        }
    }
}
