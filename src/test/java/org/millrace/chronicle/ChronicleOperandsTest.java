package org.millrace.chronicle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.time.Duration;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.BytesStore;
import net.openhft.chronicle.bytes.PointerBytesStore;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/** Operands in memory of Chronicle Bytes, in a JVM without options that open the JDK's packages. */
class ChronicleOperandsTest {

    private static final int FLOATS = 1000;
    private static final int BYTES = FLOATS * Float.BYTES;

    @BeforeAll
    static void theJvmHasNoOptionsForChronicle() {
        assertEquals("",
                ManagementFactory.getRuntimeMXBean()
                        .getInputArguments()
                        .stream()
                        .filter(option -> option.startsWith("--add-") || option.contains("unsafe"))
                        .reduce("", String::concat));
    }

    private static BytesStore<?, ?> floats(int rank) {
        BytesStore<?, ?> store = BytesStore.nativeStoreWithFixedCapacity(BYTES);
        for (int i = 0; i < FLOATS; i++) {
            store.writeFloat((long) i * Float.BYTES, rank + i);
        }
        return store;
    }

    private static void refused(String text, BytesStore<?, ?> store) {
        String message =
                assertThrows(IllegalArgumentException.class, () -> ChronicleOperands.of(store, DataType.FLOAT32))
                        .getMessage();
        assertTrue(message.contains(text), message);
    }

    @Test
    void anOperandIsTheMemoryOfItsStore() {
        BytesStore<?, ?> store = floats(0);
        Operand operand = ChronicleOperands.of(store, DataType.FLOAT32);
        assertEquals(store.addressForRead(0), operand.memory().address());
        assertEquals(FLOATS, operand.count());
        assertEquals(BYTES, ChronicleOperands.of(store).count());
        assertEquals(DataType.INT8, ChronicleOperands.of(store).type());
        store.releaseLast();
    }

    @Test
    void anOperationChangesTheStoreInPlace() {
        Millrace.local(2, communicator -> {
            BytesStore<?, ?> store = floats(communicator.rank());
            Operand operand = ChronicleOperands.of(store, DataType.FLOAT32);
            assertTrue(communicator.device().reaches(operand.memory(), operand.type()), "the operand would be copied");
            communicator.allReduce(operand, ReduceOp.SUM);
            for (int i = 0; i < FLOATS; i++) {
                assertEquals(2f * i + 1, store.readFloat((long) i * Float.BYTES));
            }
            store.releaseLast();
        });
    }

    @Test
    void anOperationOnAStreamUsesMemoryThatAPointerStoreNames() {
        Millrace.local(2, communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment memory = arena.allocate(2 * Long.BYTES, Long.BYTES);
                PointerBytesStore store = new PointerBytesStore();
                store.set(memory.address(), memory.byteSize());
                store.writeLong((long) communicator.rank() * Long.BYTES, 7 + communicator.rank());
                Operand all = ChronicleOperands.of(store, DataType.INT64);
                communicator.allGather(all.slice(communicator.rank(), 1), all, stream).toCompletableFuture().join();
                stream.synchronize(Duration.ofSeconds(30));
                assertEquals(7, store.readLong(0));
                assertEquals(8, store.readLong(Long.BYTES));
            }
        });
    }

    @Test
    void bytesAreUsedFromTheirReadPositionToTheirReadLimit() {
        Millrace.local(2, communicator -> {
            Bytes<Void> bytes = Bytes.allocateDirect(64);
            if (communicator.rank() == 0) {
                bytes.writeLong(1).writeLong(2).writeLong(3).readSkip(Long.BYTES);
            } else {
                bytes.writePosition(2 * Long.BYTES);
            }
            long position = bytes.readPosition();
            communicator.broadcast(ChronicleOperands.of(bytes, DataType.INT64), 0);
            assertEquals(position, bytes.readPosition());
            assertEquals(2, bytes.readLong());
            assertEquals(3, bytes.readLong());
            assertEquals(0, bytes.readRemaining());
            bytes.releaseLast();
        });
    }

    @Test
    void anOperandKeepsItsStoreReachable() {
        WeakReference<BytesStore<?, ?>> store = new WeakReference<>(floats(0));
        Operand operand = ChronicleOperands.of(store.get(), DataType.FLOAT32);
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        assertFalse(store.refersTo(null), "the store was collected, and Chronicle frees its memory");
        Reference.reachabilityFence(operand);
    }

    @Test
    void aStoreOnTheHeapIsRefused() {
        refused("the HeapBytesStore is not in native memory", BytesStore.wrap(new byte[BYTES]));
        refused("the OnHeapBytes is not in native memory", Bytes.allocateElasticOnHeap(BYTES).writeLong(1));
    }

    @Test
    void aReleasedStoreIsRefused() {
        BytesStore<?, ?> store = floats(0);
        store.releaseLast();
        refused("the NativeBytesStore is released", store);
        Bytes<Void> bytes = Bytes.<Void>allocateDirect(64).writeLong(1);
        bytes.releaseLast();
        refused("the NativeBytes is released", bytes);
    }

    @Test
    void bytesThatMoveTheirMemoryAreRefused() {
        refused("the NativeBytes is elastic and moves its memory", Bytes.allocateElasticDirect(64).writeLong(1));
    }

    @Test
    void bytesWithoutReadableBytesAreRefused() {
        refused("the NativeBytes has no readable bytes: set its write position", Bytes.allocateDirect(64));
        Bytes<Void> read = Bytes.<Void>allocateDirect(64).writeLong(1);
        read.readLong();
        refused("the NativeBytes has no readable bytes", read);
        refused("the PointerBytesStore has no readable bytes", new PointerBytesStore());
    }

    @Test
    void aPartOfAnElementIsRefused() {
        refused("6 bytes are not a whole number of float", BytesStore.nativeStoreWithFixedCapacity(6));
    }

    @Test
    void aReadOnlyStoreReceivesNothing() {
        BytesStore<?, ?> memory = floats(0);
        PointerBytesStore readOnly = new PointerBytesStore() {
            @Override
            public boolean readWrite() {
                return false;
            }
        };
        readOnly.set(memory.addressForRead(0), BYTES);
        Millrace.local(1, communicator -> {
            Operand operand = ChronicleOperands.of(readOnly, DataType.FLOAT32);
            String message =
                    assertThrows(IllegalArgumentException.class, () -> communicator.allReduce(operand, ReduceOp.SUM))
                            .getMessage();
            assertTrue(message.contains("is read-only"), message);
        });
        memory.releaseLast();
    }
}
