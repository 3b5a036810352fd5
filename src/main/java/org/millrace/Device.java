package org.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Where the operands of collective operations live and where the operations run: a GPU, or its emulation on CPU
 * threads.
 */
public interface Device {

    /** {@return a name for people, for instance {@code "emulated device 0"}} */
    String name();

    /**
     * Takes device memory for operands.
     *
     * @param bytes how many; zero is allowed
     * @param arena the memory's lifetime. It may be closed once every operation that uses the memory has completed.
     * @return memory aligned to 16 bytes or more. Only the emulated device's memory can be read and written by the
     *         caller directly.
     * @throws MillraceException if the device has not that much memory left
     */
    MemorySegment allocate(long bytes, Arena arena);

    /**
     * Memory that another library has taken, as an operand: of JCuda, TornadoVM, ND4J, or a tensor that DLPack
     * describes ({@code data + byte_offset}).
     *
     * @param address where it begins, as this device counts addresses
     * @param bytes   how many
     * @return the memory; the other library still owns it, and keeps it until all operations on it have completed
     * @throws IllegalArgumentException if this device does not reach the memory
     */
    default MemorySegment view(long address, long bytes) {
        throw new UnsupportedOperationException(name() + " takes no memory of others");
    }

    /**
     * {@return whether operations use some memory of the host where it lies, as no GPU does; what they do not is
     * copied}
     *
     * @param host memory of the host, on the heap or not
     * @param type what its elements are
     */
    default boolean reaches(MemorySegment host, DataType type) {
        return false;
    }

    /**
     * {@return where operands of the host lie while an operation runs}
     *
     * @throws MillraceException if this device takes none
     */
    default StagingMemory staging() {
        throw new MillraceException(name() + " takes no operands of the host: copy them to memory of its own");
    }

    /**
     * {@return a new, idle stream}
     *
     * @throws MillraceException if no communicator of this device is open
     */
    DeviceStream newStream();

    /** {@return a new event for this device's streams, not yet recorded} */
    Event newEvent();

    /**
     * Copies from host memory to this device's memory, after what the stream already holds.
     *
     * @param host   the source, on the heap or not
     * @param device the destination, of the same size
     * @param stream the stream the copy is enqueued to. The source must not change before it completes.
     */
    void copyToDevice(MemorySegment host, MemorySegment device, DeviceStream stream);

    /**
     * Copies from this device's memory to host memory, after what the stream already holds.
     *
     * @param device the source
     * @param host   the destination, of the same size, on the heap or not
     * @param stream the stream the copy is enqueued to
     */
    void copyToHost(MemorySegment device, MemorySegment host, DeviceStream stream);
}
