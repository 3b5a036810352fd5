package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DlpackTensor;
import org.millrace.Operand;
import org.millrace.ReduceOp;
import org.millrace.device.EmulatedDevice;

/** Tensors as another library encodes them, byte by byte as in {@code dlpack.h}. */
class DlpackTensorTest {

    private static final int CPU = 1;
    private static final int CUDA = 2;
    private static final int FLOAT = 2;
    private static final List<Long> DELETED = new ArrayList<>();

    private final Device device = new EmulatedDevice(0);

    static void delete(MemorySegment tensor) {
        DELETED.add(tensor.address());
    }

    private static MemorySegment tensor(Arena arena, long data, int owner, int code, int bits, int lanes, long[] shape,
            long[] strides, long offset) {
        MemorySegment struct = arena.allocate(48, 8);
        write(arena, struct, data, owner, code, bits, lanes, shape, strides, offset);
        return struct;
    }

    private static void write(Arena arena, MemorySegment struct, long data, int owner, int code, int bits, int lanes,
            long[] shape, long[] strides, long offset) {
        struct.set(ValueLayout.JAVA_LONG, 0, data);
        struct.set(ValueLayout.JAVA_INT, 8, owner);
        struct.set(ValueLayout.JAVA_INT, 16, shape.length);
        struct.set(ValueLayout.JAVA_BYTE, 20, (byte) code);
        struct.set(ValueLayout.JAVA_BYTE, 21, (byte) bits);
        struct.set(ValueLayout.JAVA_SHORT, 22, (short) lanes);
        struct.set(ValueLayout.ADDRESS, 24, arena.allocateFrom(ValueLayout.JAVA_LONG, shape));
        struct.set(ValueLayout.ADDRESS, 32,
                strides == null ? MemorySegment.NULL : arena.allocateFrom(ValueLayout.JAVA_LONG, strides));
        struct.set(ValueLayout.JAVA_LONG, 40, offset);
    }

    private Operand operand(int code, int bits, int lanes, long[] shape, long[] strides) {
        Arena arena = Arena.ofAuto();
        MemorySegment data = arena.allocate(1024, 64);
        return DlpackTensor.borrow(tensor(arena, data.address(), CPU, code, bits, lanes, shape, strides, 0).address())
                .operand(device);
    }

    @Test
    void elementsAreUsedWhereTheyLie(@TempDir Path directory) throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment data = arena.allocate(64, 64);
            data.setAtIndex(ValueLayout.JAVA_FLOAT, 5, communicator.rank() + 1);
            MemorySegment struct = tensor(arena, data.address(), CPU, FLOAT, 32, 1, new long[] {2, 3}, null, 16);
            Operand six = DlpackTensor.borrow(struct.address()).operand(communicator.device());
            assertEquals(List.of(6L, DataType.FLOAT32, data.address() + 16),
                    List.of(six.count(), six.type(), six.memory().address()));
            communicator.allReduce(six, ReduceOp.SUM, stream)
                    .toCompletableFuture()
                    .get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            assertEquals(3f, data.getAtIndex(ValueLayout.JAVA_FLOAT, 5));
        });
    }

    @Test
    void typesAndShapes() {
        assertEquals(DataType.INT8, operand(0, 8, 1, new long[] {1}, null).type());
        assertEquals(DataType.INT64, operand(0, 64, 1, new long[] {1}, null).type());
        assertEquals(DataType.UINT32, operand(1, 32, 1, new long[] {1}, null).type());
        assertEquals(DataType.FLOAT16, operand(2, 16, 1, new long[] {1}, null).type());
        assertEquals(DataType.FLOAT64, operand(2, 64, 1, new long[] {1}, null).type());
        assertEquals(DataType.BFLOAT16, operand(4, 16, 1, new long[] {1}, null).type());
        assertEquals(DataType.FLOAT8_E4M3, operand(10, 8, 1, new long[] {1}, null).type());
        assertEquals(DataType.FLOAT8_E5M2, operand(12, 8, 1, new long[] {1}, null).type());
        assertEquals(1, operand(2, 32, 1, new long[0], null).count());
        assertEquals(0, operand(2, 32, 1, new long[] {4, 0, 2}, new long[] {9, 9, 9}).count());
        assertEquals(24, operand(2, 32, 4, new long[] {2, 3}, new long[] {3, 1}).count());
        assertEquals(6, operand(2, 32, 1, new long[] {2, 1, 3}, new long[] {3, 77, 1}).count());
    }

    @Test
    void whatCannotBeUsedIsRefused() {
        refused("type code 6 with 8 bits has no type of NCCL", () -> operand(6, 8, 1, new long[] {1}, null));
        refused("type code 0 with 16 bits", () -> operand(0, 16, 1, new long[] {1}, null));
        refused("strides [1, 2]: its elements must lie one behind the other",
                () -> operand(2, 32, 1, new long[] {2, 2}, new long[] {1, 2}));
        refused("shape [-1]", () -> operand(2, 32, 1, new long[] {-1}, null));
        refused("more than 2^63 - 1 elements or bytes", () -> operand(2, 32, 1, new long[] {1L << 32, 1L << 32}, null));
        refused("more than 2^63 - 1 elements or bytes", () -> operand(2, 64, 1, new long[] {1L << 61}, null));
        refused("address of a DLPack tensor is 0", () -> DlpackTensor.borrow(0));
        Arena arena = Arena.ofAuto();
        MemorySegment onGpu = tensor(arena, 0x700000000000L, CUDA, FLOAT, 32, 1, new long[] {4}, null, 0);
        refused("lies in the memory of a GPU, and operations run on emulated device 0",
                () -> DlpackTensor.borrow(onGpu.address()).operand(device));
    }

    private static void refused(String what, Runnable call) {
        String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
        assertTrue(message.contains(what), message);
    }

    @Test
    @SuppressWarnings("restricted")
    void whatIsHandedOverIsGivenBackOnce() throws Exception {
        Linker linker = Linker.nativeLinker();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment deleter = linker.upcallStub(
                    MethodHandles.lookup()
                            .findStatic(DlpackTensorTest.class, "delete",
                                    MethodType.methodType(void.class, MemorySegment.class)),
                    FunctionDescriptor.ofVoid(ValueLayout.ADDRESS), arena);
            MemorySegment data = arena.allocate(64, 64);
            MemorySegment managed = arena.allocate(64, 8);
            write(arena, managed, data.address(), CPU, FLOAT, 32, 1, new long[] {4}, null, 0);
            managed.set(ValueLayout.ADDRESS, 56, deleter);
            MemorySegment versioned = arena.allocate(80, 8);
            versioned.set(ValueLayout.JAVA_INT, 0, 1);
            versioned.set(ValueLayout.ADDRESS, 16, deleter);
            versioned.set(ValueLayout.JAVA_LONG, 24, 1); // the flag of a read-only tensor
            write(arena, versioned.asSlice(32), data.address(), CPU, FLOAT, 32, 1, new long[] {4}, null, 0);
            DELETED.clear();
            DlpackTensor first = DlpackTensor.adopt(managed.address());
            DlpackTensor second = DlpackTensor.adoptVersioned(versioned.address());
            assertEquals(4, first.operand(device).count());
            assertTrue(second.operand(device).memory().isReadOnly());
            first.close();
            first.close();
            second.close();
            assertEquals(List.of(managed.address(), versioned.address()), DELETED);
            assertThrows(IllegalStateException.class, () -> first.operand(device));
            versioned.set(ValueLayout.JAVA_INT, 0, 2);
            refused("of DLPack 2.0, and this reads 1.x", () -> DlpackTensor.adoptVersioned(versioned.address()));
            managed.set(ValueLayout.JAVA_LONG, 56, 0);
            DlpackTensor.adopt(managed.address()).close();
        }
    }
}
