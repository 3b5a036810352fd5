package org.millrace.net;

import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Device memory that the processor neither reads nor writes, with the copies that move its content. A network transfers
 * payloads directly to and from this memory if {@link FrameSender#sendsFrom} and {@link FrameReceiver#isOnDevice} allow
 * this. Otherwise payloads are staged in host memory ({@code org.millrace.net.connection}).
 *
 * <p>
 * The thread that serves the connection uses the region. Another thread calls {@link #close}, after the serving thread
 * has stopped using the region.
 */
public interface DeviceRegion extends MemoryRegion {

    /** {@return address of the memory, as {@link Copies#copy} expects it} */
    long address();

    /** {@return size of the memory in bytes} */
    long bytes();

    /** {@return the ticket that another process of this host needs to map the memory; null if it cannot be mapped} */
    @Nullable
    Ticket ticket();

    /**
     * Maps memory of another process, or finds its existing mapping. The mapping lasts until this region is closed.
     *
     * @param process ID of the process that created the ticket
     * @param ticket  ticket of the memory to map
     * @return address of the mapped memory, as {@link Copies#copy} expects it
     * @throws org.millrace.MillraceException if this process cannot map the memory; the message has the reason
     */
    long map(long process, Ticket ticket);

    /** {@return the copies that move data from and to this memory} */
    Copies copies();

    /**
     * Lends a file descriptor of the memory as a DMA-BUF. The driver of a network card uses the descriptor to access
     * the memory.
     *
     * @param use function that receives the descriptor and returns a value of at least 0. The descriptor is closed
     *            after the call. The card can access the memory as long as the memory exists.
     * @return the result of {@code use}; -1 if the device has no DMA-BUF of this memory
     */
    default int lendDmaBuf(IntUnaryOperator use) {
        return -1;
    }

    /**
     * Description of memory that other processes can map.
     *
     * @param descriptor a file descriptor of the owning process, open as long as the memory exists
     * @param allocated  size of the whole allocation, in bytes
     * @param offset     offset of the memory in the allocation, in bytes
     */
    record Ticket(int descriptor, long allocated, long offset) {
    }

    /** Copies that a device executes in the order in which they begin. Used by one thread at a time. */
    interface Copies {

        /**
         * {@return whether a copy can begin now} The result is false while the maximum number of copies is in flight,
         * for instance because the copies wait for a long kernel. The caller then repeats the call in a later pass.
         */
        default boolean hasRoom() {
            return true;
        }

        /**
         * Begins a copy between device memory, mapped memory and host memory. The caller has checked {@link #hasRoom}.
         *
         * @param to    address of the target
         * @param from  address of the source; the source's bytes must not change until the copy is complete
         * @param bytes number of bytes to copy, 1 or more
         * @return number of the copy; later copies have larger numbers
         */
        long copy(long to, long from, long bytes);

        /**
         * Does the same as {@link #copy}, but from pinned host memory to the device.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes number of bytes to copy, 1 or more
         * @return number of the copy
         */
        default long copyFromHost(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * Does the same as {@link #copyFromHost}, but from host memory that is not pinned. The copy is not batched with
         * other copies.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes number of bytes to copy, 1 or more
         * @return number of the copy
         */
        default long copyAlone(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * Submits a copy to the device now, if the copy still waits for further copies to form a batch.
         *
         * @param number number of the copy
         */
        default void submit(long number) {
            // Copies without batches are submitted when they begin.
        }

        /**
         * {@return whether this copy and all earlier copies are complete} If the caller then notifies a thread, that
         * thread sees the copied bytes.
         *
         * @param number number of the copy
         */
        boolean isDone(long number);

        /**
         * Prepares the calling thread for the use of the copies. Called by a thread that closes the connection, because
         * another thread may serve the connection.
         *
         * @return the permission; the same thread must close it, to restore the thread's previous state
         */
        default Use enter() {
            return () -> {};
        }
    }

    /** Permission to use the copies on a thread that does not serve the connection. */
    interface Use extends AutoCloseable {

        @Override
        void close();
    }
}
