package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudart_h;

/** What was captured from a stream. Made executable, it is launched many times at the cost of one launch. */
public final class CudaGraph implements AutoCloseable {

    private final CudaRuntime runtime;
    private final NativeHandle handle;

    CudaGraph(CudaRuntime runtime, MemorySegment address) {
        this.runtime = runtime;
        this.handle = new NativeHandle("CUDA graph", address,
                graph -> runtime.checkRelease(CudaFunction.GRAPH_DESTROY, cudart_h.cudaGraphDestroy(graph)));
    }

    /** {@return an executable copy of it; the graph itself is not needed any more then} */
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

    /** Gives it back. Closing twice is allowed. */
    @Override
    public void close() {
        handle.close();
    }

    /** A graph that can be launched. The memory, events and functions that it uses must stay until it is closed. */
    public static final class Executable implements AutoCloseable {

        private final CudaRuntime runtime;
        private final NativeHandle handle;

        private Executable(CudaRuntime runtime, MemorySegment address) {
            this.runtime = runtime;
            this.handle = new NativeHandle("executable CUDA graph", address, graph -> runtime
                    .checkRelease(CudaFunction.GRAPH_EXEC_DESTROY, cudart_h.cudaGraphExecDestroy(graph)));
        }

        /**
         * Enqueues everything that was captured.
         *
         * @param stream where; it need not be the one that was captured
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

        /** Gives it back. Closing twice is allowed. */
        @Override
        public void close() {
            handle.close();
        }
    }
}
