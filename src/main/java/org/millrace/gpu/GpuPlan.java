package org.millrace.gpu;

import org.millrace.Plan;
import org.millrace.Stream;
import org.millrace.cuda.CudaGraph;

/**
 * Operations of libnccl that were captured as a CUDA graph. NCCL keeps what their kernels and its proxies need until
 * the graph is given back.
 */
final class GpuPlan implements Plan {

    private final GpuCommunicator communicator;
    private final CudaGraph.Executable graph;
    private boolean closed;

    GpuPlan(GpuCommunicator communicator, CudaGraph.Executable graph) {
        this.communicator = communicator;
        this.graph = graph;
    }

    @Override
    public synchronized void launch(Stream stream) {
        if (closed) {
            throw new IllegalStateException("rank " + communicator.rank() + ", the plan is closed");
        }
        communicator.launch(graph, stream);
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
        }
        communicator.forget(this);
        graph.close();
    }
}
