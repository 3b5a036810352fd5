package org.millrace.chronicle;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.BytesStore;
import org.millrace.DataType;
import org.millrace.Operand;

/**
 * Creates operands from native stores of Chronicle Bytes. The emulated device uses the memory of a store in place, if
 * its address is a multiple of the element size; for a GPU, the elements are copied. The program owns the store: an
 * operand only keeps the store reachable. The program must not release or resize the store before all operations on the
 * operand are complete.
 */
public final class ChronicleOperands {

    private ChronicleOperands() {}

    /** {@return the bytes of a store, as {@link DataType#INT8}} See {@link #of(BytesStore, DataType)}. */
    public static Operand of(BytesStore<?, ?> store) {
        return of(store, DataType.INT8);
    }

    /**
     * {@return the elements of a store, without a copy} In a {@code Bytes}, the elements lie between the read position
     * and the read limit. In any other store, the elements are the whole store. To receive into an empty {@code Bytes},
     * first advance its write position. The bytes before that position are then the operand. Callable from any thread
     * that may use the store.
     *
     * @param type element type
     * @throws IllegalArgumentException if the store is released, on the heap, elastic or without readable bytes, or if
     *                                  the number of readable bytes is not a multiple of the element size
     */
    @SuppressWarnings("restricted") // safe: address and size come from the store itself
    public static Operand of(BytesStore<?, ?> store, DataType type) {
        String problem = store.refCount() <= 0 ? "is released: reserve it until all operations on it are complete"
                : !store.isDirectMemory() ? "is not in native memory: use BytesStore.nativeStoreWithFixedCapacity"
                        : store instanceof Bytes<?> bytes && bytes.capacity() > bytes.realCapacity()
                                ? "is elastic and moves its memory when it grows: use Bytes.allocateDirect(capacity)"
                                : store.readRemaining() == 0 ? "has no readable bytes: set its write position" : "";
        if (!problem.isEmpty()) {
            throw new IllegalArgumentException("the " + store.getClass().getSimpleName() + " " + problem);
        }
        // The captured reference keeps the store reachable, because Chronicle frees the memory of unreachable stores.
        MemorySegment memory = MemorySegment.ofAddress(store.addressForRead(store.readPosition()))
                .reinterpret(store.readRemaining(), Arena.ofAuto(), _ -> Reference.reachabilityFence(store));
        return Operand.ofHost(store.readWrite() ? memory : memory.asReadOnly(), type);
    }
}
