package org.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A GPU, or its emulation on CPU threads. A device holds the operands of collective operations and runs the operations.
 */
public interface Device {

    /** {@return name for messages, for instance {@code "emulated device 0"}} */
    String name();

    /**
     * Allocates device memory for operands.
     *
     * @param bytes size in bytes; zero is allowed
     * @param arena lifetime of the memory. The caller may close the arena when every operation that uses the memory is
     *              complete.
     * @return memory aligned to 16 bytes or more. The program can read and write it directly only on the emulated
     *         device.
     * @throws MillraceException if the device has not enough memory left
     */
    MemorySegment allocate(long bytes, Arena arena);

    /**
     * Returns memory of another library as device memory. Examples are memory of JCuda, TornadoVM or ND4J, and a tensor
     * described by DLPack ({@code data + byte_offset}).
     *
     * @param address address in this device's address space
     * @param bytes   size in bytes
     * @return the memory; the other library still owns it, and must keep it until all operations on it are complete
     * @throws IllegalArgumentException if this device cannot access the memory
     */
    default MemorySegment view(long address, long bytes) {
        throw new UnsupportedOperationException(name() + " cannot use memory of other libraries");
    }

    /**
     * {@return whether operations of this device use the host memory in place} Otherwise the operations copy the
     * memory. A GPU never uses host memory in place.
     *
     * @param host host memory, on the heap or not
     * @param type element type
     */
    default boolean reaches(MemorySegment host, DataType type) {
        return false;
    }

    /**
     * {@return a new, idle stream}
     *
     * @throws MillraceException if no communicator of this device is open
     */
    DeviceStream newStream();

    /** {@return a new event for the streams of this device; the event is not recorded yet} */
    Event newEvent();

    /**
     * Copies from host memory to this device's memory, after the stream's earlier work.
     *
     * @param host   the source, on the heap or not; it must not change before the copy is complete
     * @param device the destination, of the same size
     * @param stream stream of the copy
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
