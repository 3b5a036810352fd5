package org.millrace.net;

import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Device memory that the processor neither reads nor writes, with the copies that move it. A network uses it directly
 * where {@link FrameSender#sendsFrom} and {@link FrameReceiver#isOnDevice} allow it. Elsewhere its payloads are staged
 * in host memory ({@code org.millrace.net.connection}).
 *
 * <p>
 * The thread that serves the connection uses the region. Another thread calls {@link #close}, after the serving thread
 * has stopped using the region.
 */
public interface DeviceRegion extends MemoryRegion {

    /** {@return address of the memory, as {@link Copies#copy} expects it} */
    long address();

    /** {@return size in bytes} */
    long bytes();

    /** {@return the data that another process of this host needs to map the memory; null if it cannot be mapped} */
    @Nullable
    Ticket ticket();

    /**
     * Maps memory of another process, or finds an existing mapping. The mapping lasts until this region is closed.
     *
     * @param process ID of the process that created the ticket
     * @param ticket  the ticket of that process
     * @return address of the memory, as {@link Copies#copy} expects it
     * @throws org.millrace.MillraceException if the memory cannot be mapped here; the message has the reason
     */
    long map(long process, Ticket ticket);

    /** {@return the copies of this memory} */
    Copies copies();

    /**
     * Lends a file descriptor of the memory as a DMA-BUF, which gives the driver of a network card access to the
     * memory.
     *
     * @param use receives the descriptor, which is closed after the call. The card's access ends with the memory.
     *            Returns a value of at least 0
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

    /** Copies that a device executes in order. Used by one thread. */
    interface Copies {

        /**
         * {@return whether a copy can begin now; false while the maximum number of copies is in flight, for instance
         * behind a long kernel. The caller then asks again in a later pass}
         */
        default boolean hasRoom() {
            return true;
        }

        /**
         * Begins a copy between device memory, mapped memory and host memory. Requires {@link #hasRoom}.
         *
         * @param to    address of the target
         * @param from  address of the source, which stays unchanged until the copy is complete
         * @param bytes 1 or more
         * @return number of the copy; numbers only increase
         */
        long copy(long to, long from, long bytes);

        /**
         * Like {@link #copy}, from pinned host memory to the device.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes 1 or more
         * @return number of the copy
         */
        default long copyFromHost(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * Like {@link #copyFromHost}, but from host memory that is not pinned. The copy is not batched with others.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes 1 or more
         * @return number of the copy
         */
        default long copyAlone(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * Submits a copy that may still wait for others to form a batch.
         *
         * @param number number of the copy
         */
        default void submit(long number) {
            // the copy has begun already
        }

        /**
         * {@return whether this copy and all earlier copies are complete; a thread that is notified afterwards sees the
         * bytes}
         *
         * @param number number of the copy
         */
        boolean isDone(long number);

        /**
         * Prepares the calling thread for the use of the copies, if it is not the thread that serves the connection.
         * The closing thread needs this.
         *
         * @return restores the thread's previous state when the same thread closes it
         */
        default Use enter() {
            return () -> {};
        }
    }

    /** Permission of a thread other than the connection's to use copies. */
    interface Use extends AutoCloseable {

        @Override
        void close();
    }
}
