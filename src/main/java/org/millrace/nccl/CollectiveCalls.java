package org.millrace.nccl;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.millrace.ffi.nccl.nccl_h;

/**
 * The collectives with addresses as plain numbers. The generated functions take a segment for each pointer, and a
 * segment that a downcall accepts would have to be made for every operand (see
 * {@link org.millrace.cuda.DeviceSegments}): 40 bytes a call, unless the compiler happens to prove that it does not
 * escape. The types come from the generated descriptors; each function is linked when it is called first.
 */
final class CollectiveCalls {

    private CollectiveCalls() {}

    private static final class AllReduce {
        static final MethodHandle CALL = link(nccl_h.ncclAllReduce$address(), nccl_h.ncclAllReduce$descriptor());
    }

    static int allReduce(long send, long receive, long count, int type, int op, long communicator, long stream) {
        try {
            return (int) AllReduce.CALL.invokeExact(send, receive, count, type, op, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Reduce {
        static final MethodHandle CALL = link(nccl_h.ncclReduce$address(), nccl_h.ncclReduce$descriptor());
    }

    static int reduce(long send, long receive, long count, int type, int op, int root, long communicator, long stream) {
        try {
            return (int) Reduce.CALL.invokeExact(send, receive, count, type, op, root, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class ReduceScatter {
        static final MethodHandle CALL =
                link(nccl_h.ncclReduceScatter$address(), nccl_h.ncclReduceScatter$descriptor());
    }

    static int reduceScatter(long send, long receive, long count, int type, int op, long communicator, long stream) {
        try {
            return (int) ReduceScatter.CALL.invokeExact(send, receive, count, type, op, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Broadcast {
        static final MethodHandle CALL = link(nccl_h.ncclBroadcast$address(), nccl_h.ncclBroadcast$descriptor());
    }

    static int broadcast(long send, long receive, long count, int type, int root, long communicator, long stream) {
        try {
            return (int) Broadcast.CALL.invokeExact(send, receive, count, type, root, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class AllGather {
        static final MethodHandle CALL = link(nccl_h.ncclAllGather$address(), nccl_h.ncclAllGather$descriptor());
    }

    static int allGather(long send, long receive, long count, int type, long communicator, long stream) {
        try {
            return (int) AllGather.CALL.invokeExact(send, receive, count, type, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class AllToAll {
        static final MethodHandle CALL = link(nccl_h.ncclAlltoAll$address(), nccl_h.ncclAlltoAll$descriptor());
    }

    static int allToAll(long send, long receive, long count, int type, long communicator, long stream) {
        try {
            return (int) AllToAll.CALL.invokeExact(send, receive, count, type, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Gather {
        static final MethodHandle CALL = link(nccl_h.ncclGather$address(), nccl_h.ncclGather$descriptor());
    }

    static int gather(long send, long receive, long count, int type, int root, long communicator, long stream) {
        try {
            return (int) Gather.CALL.invokeExact(send, receive, count, type, root, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Scatter {
        static final MethodHandle CALL = link(nccl_h.ncclScatter$address(), nccl_h.ncclScatter$descriptor());
    }

    static int scatter(long send, long receive, long count, int type, int root, long communicator, long stream) {
        try {
            return (int) Scatter.CALL.invokeExact(send, receive, count, type, root, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Send {
        static final MethodHandle CALL = link(nccl_h.ncclSend$address(), nccl_h.ncclSend$descriptor());
    }

    static int send(long buffer, long count, int type, int peer, long communicator, long stream) {
        try {
            return (int) Send.CALL.invokeExact(buffer, count, type, peer, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    private static final class Recv {
        static final MethodHandle CALL = link(nccl_h.ncclRecv$address(), nccl_h.ncclRecv$descriptor());
    }

    static int receive(long buffer, long count, int type, int peer, long communicator, long stream) {
        try {
            return (int) Recv.CALL.invokeExact(buffer, count, type, peer, communicator, stream);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** Pointers and 64-bit integers are passed alike on every machine that NCCL runs on. */
    @SuppressWarnings("restricted")
    private static MethodHandle link(MemorySegment function, FunctionDescriptor type) {
        MemoryLayout[] arguments = type.argumentLayouts()
                .stream()
                .map(layout -> layout instanceof AddressLayout ? ValueLayout.JAVA_LONG : layout)
                .toArray(MemoryLayout[]::new);
        return Linker.nativeLinker()
                .downcallHandle(function, FunctionDescriptor.of(type.returnLayout().orElseThrow(), arguments));
    }

    private static Error unexpected(Throwable thrown) {
        return thrown instanceof Error error ? error : new AssertionError("a downcall threw", thrown);
    }
}
