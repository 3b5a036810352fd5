package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.abi.kernel.WorkFifoCounters;
import org.millrace.abi.kernel.WorkType;

/** A kernel finds every work item on every channel, in order, wherever the items are stored. */
class PlanBuilderTest {

    private static final long COMMUNICATOR = 0x1234;

    private record Item(WorkType type, int function, long mark, int round) {
    }

    @ParameterizedTest
    @CsvSource({"ARGUMENTS, 4096, 3, 0", "FIFO, 4096, 100, 0", "FIFO, 4096, 100, -4096", "FIFO, 4096, 100, 2147483632",
            "FIFO, 1024, 20, -16", "PERSISTENT, 1024, 40, 0"})
    void everyChannelFindsItsItems(KernelArguments.WorkStorage storage, int argumentBytes, int operations, int first) {
        for (long seed = 1; seed <= 20; seed++) {
            Random random = new Random(seed);
            try (Arena arena = Arena.ofShared()) {
                WorkFifoCounters counters =
                        WorkFifoCounters.of(arena.allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
                WorkFifo fifo = new WorkFifo(arena.allocate(1 << 15, 16), counters, first);
                fifo.put(MemorySegment.ofArray(new long[2 * random.nextInt(100)]));
                PlanBuilder builder = new PlanBuilder("", argumentBytes, 1 << 14);
                List<List<Item>> expected = new ArrayList<>();
                for (int channel = 0; channel < KernelArguments.MAX_CHANNELS; channel++) {
                    expected.add(new ArrayList<>());
                }
                for (int operation = 0; operation < operations
                        && builder.hasRoom(WorkType.COLLECTIVE, 8); operation++) {
                    add(builder, random, expected, operation);
                }
                KernelPlan plan = builder.finish(COMMUNICATOR, storage == KernelArguments.WorkStorage.PERSISTENT);
                assertEquals(storage, plan.storage(), "seed " + seed);
                KernelArguments arguments = plan.upload(fifo);
                assertEquals(COMMUNICATOR, arguments.communicator());
                for (int block = 0; block < Long.bitCount(arguments.channelMask()); block++) {
                    assertEquals(expected.get(arguments.channel(block)), read(reader(arguments, counters, block)),
                            "seed " + seed + ", block " + block);
                    expected.get(arguments.channel(block)).clear();
                }
                assertTrue(expected.stream().allMatch(List::isEmpty), "seed " + seed + ": a channel has no block");
                plan.close();
            }
        }
    }

    private static void add(PlanBuilder builder, Random random, List<List<Item>> expected, int operation) {
        long mark = random.nextLong();
        int function = 1 + random.nextInt(2);
        MemorySegment memory = MemorySegment.ofArray(new long[CollectiveWork.BYTES / 8]);
        if (random.nextInt(3) > 0) {
            CollectiveWork work = CollectiveWork.of(memory);
            int low = random.nextInt(60);
            work.spread(low, low + random.nextInt(4), 0, 0, 0);
            work.set(mark, 0, 0, 0, 0);
            builder.collective(work, function, "collective " + operation);
            for (int channel = work.channelLow(); channel <= work.channelHigh(); channel++) {
                expected.get(channel).add(new Item(WorkType.COLLECTIVE, function, mark, 0));
            }
        } else {
            PointToPointWork work = PointToPointWork.of(memory);
            work.set(8, 0);
            work.channelBase(random.nextInt(8));
            work.send(operation, mark, 0, 1 << random.nextInt(3));
            builder.pointToPoint(work, 0, operation, "transfer " + operation);
            for (int part = 0; part < work.sendChannels(); part++) {
                int channel = (work.channelBase() + part) % 8;
                assertEquals(part, work.part(channel));
                expected.get(channel).add(new Item(WorkType.POINT_TO_POINT, 0, mark, operation));
            }
        }
    }

    private static List<Item> read(WorkReader reader) {
        List<Item> found = new ArrayList<>();
        while (reader.next()) {
            Set<Integer> rounds = new HashSet<>();
            Set<Integer> epochs = new HashSet<>();
            for (int i = 0; i < reader.items(); i++) {
                MemorySegment item = reader.item(i);
                if (reader.type() == WorkType.COLLECTIVE) {
                    found.add(new Item(reader.type(), reader.function(), CollectiveWork.of(item).sendBuffer(), 0));
                } else {
                    PointToPointWork work = PointToPointWork.of(item);
                    found.add(new Item(reader.type(), reader.function(), work.sendAddress(), work.sendRank()));
                    assertTrue(rounds.add(work.sendRank()), "two transfers of one round in a batch");
                    epochs.add(work.sendRank() / WorkBatch.MAX_POINT_TO_POINT);
                }
            }
            assertTrue(epochs.size() <= 1, "a batch of transfers from rounds " + rounds);
        }
        return found;
    }

    @Test
    void overwrittenWorkIsDetected() {
        try (Arena arena = Arena.ofConfined()) {
            WorkFifoCounters counters =
                    WorkFifoCounters.of(arena.allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
            WorkFifo fifo = new WorkFifo(arena.allocate(1024, 16), counters, -64);
            PlanBuilder builder = new PlanBuilder("", KernelArguments.BYTES + WorkBatch.BYTES, 512);
            builder.collective(CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / 8])), 1,
                    "collective");
            KernelPlan plan = builder.finish(COMMUNICATOR, false);
            KernelArguments arguments = plan.upload(fifo);
            assertTrue(reader(arguments, counters, 0).next());
            fifo.consume(fifo.produced());
            fifo.put(MemorySegment.ofArray(new long[1024 / 8]));
            MillraceException thrown =
                    assertThrows(MillraceException.class, () -> reader(arguments, counters, 0).next());
            assertTrue(thrown.getMessage().contains("is not in the FIFO"), thrown.getMessage());
        }
    }

    private static WorkReader reader(KernelArguments arguments, WorkFifoCounters counters, int block) {
        WorkReader reader = new WorkReader(counters);
        reader.begin(arguments, block);
        return reader;
    }
}
