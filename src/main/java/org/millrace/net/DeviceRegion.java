package org.millrace.net;

import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Memory of a device that processors neither read nor write, with what copies it. A network takes it as it is where
 * {@link FrameSender#sendsFrom} and {@link FrameReceiver#isOnDevice} say so; its payloads are staged in the host's
 * memory elsewhere ({@code org.millrace.net.connection}).
 *
 * <p>
 * The thread that serves the connection uses it, but for {@link #close}, which another thread calls when that one does
 * not use it any more.
 */
public interface DeviceRegion extends MemoryRegion {

    /** {@return where the memory begins, as {@link Copies#copy} takes it} */
    long address();

    /** {@return how many bytes it has} */
    long bytes();

    /** {@return what another process of this host needs to map the memory; null if it cannot be mapped} */
    @Nullable
    Ticket ticket();

    /**
     * Maps memory of another process, or finds it mapped. It stays so until this region is closed.
     *
     * @param process number of the process that made the ticket
     * @param ticket  what it said
     * @return where the memory begins, as {@link Copies#copy} takes it
     * @throws org.millrace.MillraceException if it cannot be mapped here; the message says why
     */
    long map(long process, Ticket ticket);

    /** {@return what copies this memory} */
    Copies copies();

    /**
     * Lends a file descriptor of the memory as a DMA-BUF, by which a card's driver can reach it.
     *
     * @param use takes the descriptor, which is closed when it returns, and whose end is the memory's: a result that is
     *            not negative
     * @return what it returned; -1 if the device has no DMA-BUF of this memory
     */
    default int lendDmaBuf(IntUnaryOperator use) {
        return -1;
    }

    /**
     * What a process says of memory that others may map.
     *
     * @param descriptor a file descriptor of that process, open while the memory is there
     * @param allocated  bytes of the whole allocation
     * @param offset     of the memory in it
     */
    record Ticket(int descriptor, long allocated, long offset) {
    }

    /** Copies that a device makes one after another. One thread. */
    interface Copies {

        /**
         * {@return whether a copy may be begun now; false while as many are under way as can be asked after, for
         * instance behind a long kernel: ask again in a later pass}
         */
        default boolean hasRoom() {
            return true;
        }

        /**
         * Begins a copy between memory of the device, mapped memory, and the host's. There must be {@link #hasRoom}.
         *
         * @param to    address of the target
         * @param from  address of the source, unchanged until the copy was made
         * @param bytes 1 or more
         * @return the copy's number; numbers only grow
         */
        long copy(long to, long from, long bytes);

        /**
         * As {@link #copy}, from pinned memory of the host to the device.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes 1 or more
         * @return the copy's number
         */
        default long copyFromHost(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * As {@link #copyFromHost}, but together with no other: from memory of the host that is not pinned.
         *
         * @param to    address of the target
         * @param from  address of the source
         * @param bytes 1 or more
         * @return the copy's number
         */
        default long copyAlone(long to, long from, long bytes) {
            return copy(to, from, bytes);
        }

        /**
         * A copy need not wait any longer for others to be begun together with it.
         *
         * @param number the copy's
         */
        default void submit(long number) {
            // it has been begun
        }

        /**
         * {@return whether a copy was made, and all before it: who is told now sees the bytes}
         *
         * @param number the copy's
         */
        boolean isDone(long number);

        /**
         * Lets a thread use the copies that is not the one which serves the connection: whoever closes it.
         *
         * @return to be closed by that thread, which finds itself as it was before
         */
        default Use enter() {
            return () -> {};
        }
    }

    /** What another thread than the connection's holds while it uses copies. */
    interface Use extends AutoCloseable {

        @Override
        void close();
    }
}
