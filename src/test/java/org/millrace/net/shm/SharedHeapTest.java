package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class SharedHeapTest {

    @BeforeAll
    static void isThereAny() {
        assumeTrue(SharedMemory.sealedDomain() != 0, "this machine has no sealed memory");
    }

    /** Another process that maps the heap sees all writes of the owner, and cannot write to the heap. */
    @Test
    void anotherMappingSeesWhatIsHandedOut() {
        try (SharedHeap heap = SharedHeap.create();
                SharedMemory.Mapping theirs = SharedHeap.open(heap.name());
                Arena arena = Arena.ofShared()) {
            heap.allocate(5000, arena);
            MemorySegment part = heap.allocate(100, arena);
            part.set(ValueLayout.JAVA_LONG, 8, 42);
            long offset = part.address() - heap.segment().address();
            assertEquals(42, theirs.segment().get(ValueLayout.JAVA_LONG, offset + 8));
            assertThrows(IllegalArgumentException.class, () -> theirs.segment().set(ValueLayout.JAVA_LONG, offset, 1));
        }
    }

    /**
     * Allocations never overlap, and contain zeros even if their memory was used before. At the end all memory is free.
     */
    @Test
    void whatIsGivenBackIsHandedOutAgainAsZeros() {
        Random random = new Random(1);
        try (SharedHeap heap = SharedHeap.create()) {
            long all = heap.freeBytes();
            Deque<Arena> owners = new ArrayDeque<>();
            for (int i = 0; i < 300; i++) {
                Arena owner = Arena.ofShared();
                owners.add(owner);
                MemorySegment part = heap.allocate(random.nextInt(40_000), owner);
                assertEquals(-1, part.mismatch(MemorySegment.ofArray(new byte[(int) part.byteSize()])));
                part.fill((byte) i);
                if (owners.size() > 10) {
                    (random.nextBoolean() ? owners.pollFirst() : owners.pollLast()).close();
                }
            }
            owners.forEach(Arena::close);
            assertEquals(all, heap.freeBytes());
            assertNull(heap.allocate(all + 1, Arena.global()), "more than there is");
        }
    }

    /** A file of 100 bytes has no room for the heap's first page, and the file's seals fix its length. */
    @Test
    void aHeapThatCannotTakeItsFirstPageLeavesNoMapping() throws IOException {
        long before = mappings();
        assertThrows(ShmUnavailableException.class, () -> SharedHeap.create(100));
        assertEquals(before, mappings());
    }

    private static long mappings() throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.filter(line -> line.contains("/memfd:")).count();
        }
    }

    /** A program may free memory of the heap after the communicator that owns the heap is closed. */
    @Test
    void memoryOutlivesTheHeapsUsers() {
        SharedHeap heap = SharedHeap.create();
        heap.share();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment part = heap.allocate(100, arena);
            heap.close();
            SharedHeap.open(heap.name()).close();
            heap.close();
            part.set(ValueLayout.JAVA_LONG, 0, 42);
            assertEquals(42, part.get(ValueLayout.JAVA_LONG, 0));
            assertNull(heap.allocate(1, arena), "nobody hands it out any more");
        }
        String said = assertThrows(ShmUnavailableException.class, () -> SharedHeap.open(heap.name())).getMessage();
        assertTrue(said.contains("NCCL_P2P_DISABLE"), said);
    }

    @Test
    void aNameOfAPeerIsNotBelieved() {
        for (String name : new String[] {"", "../../etc/passwd", "millrace-0000000000000001-1-2-3.mem"}) {
            assertThrows(ShmUnavailableException.class, () -> SharedHeap.open(name), name);
        }
    }
}
