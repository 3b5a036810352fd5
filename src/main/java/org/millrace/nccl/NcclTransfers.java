package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.handle.NativeHandle;

/**
 * A communicator's operations that move elements without changing them. Each enqueues to a stream of the communicator's
 * device and returns; with a communicator that does not block it may go on after that, so that
 * {@link NcclCommunicator#awaitReady} comes before the next call. Counts are elements. Operands are device memory, or
 * pinned host memory as the device sees it; nothing is allocated on the way.
 *
 * <p>
 * All of them throw {@link NcclException} if NCCL refuses, {@link IllegalArgumentException} if an operand is too small,
 * closed or in the Java heap, and {@link IllegalStateException} if the communicator or the stream is closed.
 */
public abstract sealed class NcclTransfers extends NcclSignals permits NcclCollectives {

    NcclTransfers(NcclLibrary library, CudaDevice device, NativeHandle handle, int size, int rank,
            boolean nonBlocking) {
        super(library, device, handle, size, rank, nonBlocking);
    }

    /**
     * Gives every rank one rank's elements.
     *
     * @param send    {@code count} elements at the root; may be null elsewhere
     * @param receive {@code count} elements; may be the same memory
     */
    public final void broadcast(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type,
            int root, CudaStream stream) {
        long bytes = bytes(count, 1, type);
        long from = optional("send", send, bytes, root);
        long to = DeviceSegments.address("receive", receive, bytes);
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.BROADCAST, communicator, CollectiveCalls.broadcast(from, to, count, type.code(), root,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Gives every rank all ranks' elements.
     *
     * @param send    {@code count} elements; for an operation in place, {@code receive}'s part number {@code rank()}
     * @param receive {@code size() * count} elements, ordered by rank
     */
    public final void allGather(MemorySegment send, MemorySegment receive, long count, DataType type,
            CudaStream stream) {
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = DeviceSegments.address("receive", receive, bytes(count, size(), type));
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.ALL_GATHER, communicator, CollectiveCalls.allGather(from, to, count, type.code(),
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Exchanges elements between all ranks: part {@code j} of rank {@code i} becomes part {@code i} of rank {@code j}.
     * NCCL 2.28.
     *
     * @param send    {@code size() * count} elements
     * @param receive {@code size() * count} elements; not the same memory
     * @param count   number of elements from each rank to each
     */
    public final void allToAll(MemorySegment send, MemorySegment receive, long count, DataType type,
            CudaStream stream) {
        library.require(NcclFunction.ALL_TO_ALL);
        long bytes = bytes(count, size(), type);
        long from = DeviceSegments.address("send", send, bytes);
        long to = DeviceSegments.address("receive", receive, bytes);
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.ALL_TO_ALL, communicator, CollectiveCalls.allToAll(from, to, count, type.code(),
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Gives one rank all ranks' elements. NCCL 2.28.
     *
     * @param send    {@code count} elements
     * @param receive {@code size() * count} elements at the root, ordered by rank; may be null elsewhere
     */
    public final void gather(MemorySegment send, @Nullable MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.GATHER);
        long from = DeviceSegments.address("send", send, bytes(count, 1, type));
        long to = optional("receive", receive, bytes(count, size(), type), root);
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.GATHER, communicator, CollectiveCalls.gather(from, to, count, type.code(), root,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Gives each rank its part of one rank's elements. NCCL 2.28.
     *
     * @param send    {@code size() * count} elements at the root, ordered by rank; may be null elsewhere
     * @param receive {@code count} elements
     * @param count   number of elements that each rank gets
     */
    public final void scatter(@Nullable MemorySegment send, MemorySegment receive, long count, DataType type, int root,
            CudaStream stream) {
        library.require(NcclFunction.SCATTER);
        long from = optional("send", send, bytes(count, size(), type), root);
        long to = DeviceSegments.address("receive", receive, bytes(count, 1, type));
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.SCATTER, communicator, CollectiveCalls.scatter(from, to, count, type.code(), root,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Sends elements to one rank, which receives as many. Several sends and receives that depend on each other belong
     * into one group.
     *
     * @param buffer {@code count} elements
     */
    public final void send(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.SEND);
        long from = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.SEND, communicator, CollectiveCalls.send(from, count, type.code(), peer,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }

    /**
     * Receives elements from one rank, which sends as many.
     *
     * @param buffer {@code count} elements
     */
    public final void receive(MemorySegment buffer, long count, DataType type, int peer, CudaStream stream) {
        library.require(NcclFunction.RECV);
        long to = DeviceSegments.address("buffer", buffer, bytes(count, 1, type));
        MemorySegment communicator = enter(stream);
        try {
            settle(NcclFunction.RECV, communicator, CollectiveCalls.receive(to, count, type.code(), peer,
                    communicator.address(), stream.handle().address().address()));
        } finally {
            exit(stream);
        }
    }
}
