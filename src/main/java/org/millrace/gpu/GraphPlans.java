package org.millrace.gpu;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.millrace.DeviceStream;
import org.millrace.OperationGroup;
import org.millrace.Plan;
import org.millrace.cuda.CudaGraph;
import org.millrace.cuda.CudaStream;

/**
 * A communicator's plans: operations of libnccl that were captured as CUDA graphs. NCCL keeps what their kernels and
 * its proxies need until a graph is given back, so all are before NCCL's communicator is.
 */
final class GraphPlans implements AutoCloseable {

    private final String who;
    private final BiConsumer<CudaGraph.Executable, DeviceStream> launcher;
    private final Set<GraphPlan> plans = ConcurrentHashMap.newKeySet();

    /**
     * @param launcher launches a graph, as the communicator launches operations
     */
    GraphPlans(String who, BiConsumer<CudaGraph.Executable, DeviceStream> launcher) {
        this.who = who;
        this.launcher = launcher;
    }

    /** Makes a plan of what is called, of which nothing runs now. */
    Plan capture(CudaStream stream, Runnable operations) {
        requireNoGroup("a plan is made");
        CudaGraph captured = graph(stream, operations);
        try (captured) {
            GraphPlan plan = new GraphPlan(captured.instantiate());
            plans.add(plan);
            return plan;
        }
    }

    private static CudaGraph graph(CudaStream stream, Runnable operations) {
        stream.beginGraph();
        try {
            OperationGroup.record(operations);
        } catch (RuntimeException | Error thrown) {
            try {
                stream.endGraph().close(); // or the stream stays unusable
            } catch (RuntimeException invalid) {
                thrown.addSuppressed(invalid);
            }
            throw thrown;
        }
        return stream.endGraph();
    }

    private void requireNoGroup(String what) {
        if (OperationGroup.isOpen()) {
            throw new IllegalStateException(who + ", " + what + " outside of groups");
        }
    }

    @Override
    public void close() {
        plans.forEach(GraphPlan::close);
    }

    private final class GraphPlan implements Plan {

        private final CudaGraph.Executable graph;
        private boolean closed;

        GraphPlan(CudaGraph.Executable graph) {
            this.graph = graph;
        }

        @Override
        public synchronized void launch(DeviceStream stream) {
            if (closed) {
                throw new IllegalStateException(who + ", the plan is closed");
            }
            requireNoGroup("a plan is launched");
            launcher.accept(graph, stream);
        }

        @Override
        public void close() {
            synchronized (this) {
                closed = true;
            }
            plans.remove(this);
            graph.close();
        }
    }
}
