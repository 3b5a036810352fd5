package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudart_h;

/**
 * Captured work of a stream. An executable copy of the graph can be launched many times, and each launch costs as much
 * as one kernel launch.
 */
public final class CudaGraph implements AutoCloseable {

    private final CudaRuntime runtime;
    private final NativeHandle handle;

    CudaGraph(CudaRuntime runtime, MemorySegment address) {
        this.runtime = runtime;
        this.handle = new NativeHandle("CUDA graph", address,
                graph -> runtime.checkRelease(CudaFunction.GRAPH_DESTROY, cudart_h.cudaGraphDestroy(graph)));
    }

    /** {@return an executable copy of the graph; the graph may be closed afterwards} */
    public Executable instantiate() {
        runtime.require(CudaFunction.GRAPH_INSTANTIATE_WITH_FLAGS);
        MemorySegment graph = handle.enter();
        try {
            return new Executable(runtime, runtime.addressOf(CudaFunction.GRAPH_INSTANTIATE_WITH_FLAGS,
                    out -> cudart_h.cudaGraphInstantiateWithFlags(out, graph, 0)));
        } finally {
            handle.exit();
        }
    }

    /** Destroys the graph. May be called twice. */
    @Override
    public void close() {
        handle.close();
    }

    /**
     * A graph that can be launched. The memory, events and functions that the captured work uses must stay valid until
     * this object is closed.
     */
    public static final class Executable implements AutoCloseable {

        private final CudaRuntime runtime;
        private final NativeHandle handle;

        private Executable(CudaRuntime runtime, MemorySegment address) {
            this.runtime = runtime;
            this.handle = new NativeHandle("executable CUDA graph", address, graph -> runtime
                    .checkRelease(CudaFunction.GRAPH_EXEC_DESTROY, cudart_h.cudaGraphExecDestroy(graph)));
        }

        /**
         * Enqueues all captured work in a stream.
         *
         * @param stream any stream; it need not be the stream that was captured
         */
        public void launch(CudaStream stream) {
            MemorySegment graph = handle.enter();
            try {
                MemorySegment queue = stream.handle().enter();
                try {
                    runtime.check(CudaFunction.GRAPH_LAUNCH, cudart_h.cudaGraphLaunch(graph, queue));
                } finally {
                    stream.handle().exit();
                }
            } finally {
                handle.exit();
            }
        }

        /** Destroys the executable graph. May be called twice. */
        @Override
        public void close() {
            handle.close();
        }
    }
}
