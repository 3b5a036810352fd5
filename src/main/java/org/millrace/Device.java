package org.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Place of the operands of collective operations, on which the operations also run: a GPU, or its emulation on CPU
 * threads.
 */
public interface Device {

    /** {@return name for messages, for instance {@code "emulated device 0"}} */
    String name();

    /**
     * Allocates device memory for operands.
     *
     * @param bytes size in bytes; zero is allowed
     * @param arena lifetime of the memory. It may be closed when every operation that uses the memory is complete.
     * @return memory aligned to 16 bytes or more. The caller can read and write only the emulated device's memory
     *         directly.
     * @throws MillraceException if the device has not enough memory left
     */
    MemorySegment allocate(long bytes, Arena arena);

    /**
     * Returns memory of another library as device memory: of JCuda, TornadoVM, ND4J, or a tensor described by DLPack
     * ({@code data + byte_offset}).
     *
     * @param address address in this device's address space
     * @param bytes   size in bytes
     * @return the memory; the other library still owns it, and keeps it until all operations on it are complete
     * @throws IllegalArgumentException if this device cannot access the memory
     */
    default MemorySegment view(long address, long bytes) {
        throw new UnsupportedOperationException(name() + " takes no memory of others");
    }

    /**
     * {@return whether operations use this host memory in place, which no GPU does; other host memory is copied}
     *
     * @param host host memory, on the heap or not
     * @param type element type
     */
    default boolean reaches(MemorySegment host, DataType type) {
        return false;
    }

    /**
     * {@return memory for host operands while an operation runs}
     *
     * @throws MillraceException if this device accepts no host operands
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

    /** {@return a new event for this device's streams, not recorded yet} */
    Event newEvent();

    /**
     * Copies from host memory to this device's memory, after the stream's earlier work.
     *
     * @param host   the source, on the heap or not
     * @param device the destination, of the same size
     * @param stream stream of the copy. The source must not change before the copy is complete.
     */
    void copyToDevice(MemorySegment host, MemorySegment device, DeviceStream stream);

    /**
     * Copies from this device's memory to host memory, after the stream's earlier work.
     *
     * @param device the source
     * @param host   the destination, of the same size, on the heap or not
     * @param stream stream of the copy
     */
    void copyToHost(MemorySegment device, MemorySegment host, DeviceStream stream);
}
