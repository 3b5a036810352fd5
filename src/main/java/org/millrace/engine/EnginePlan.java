package org.millrace.engine;

import java.util.List;
import org.millrace.Plan;
import org.millrace.Stream;

/** Operations whose work was placed once, in memory that stays. */
final class EnginePlan implements Plan {

    private final EngineCommunicator communicator;
    private final List<PlannedKernel> kernels;

    EnginePlan(EngineCommunicator communicator, List<PlannedKernel> kernels) {
        this.communicator = communicator;
        this.kernels = kernels;
    }

    @Override
    public void launch(Stream stream) {
        communicator.launch(kernels, stream);
    }

    @Override
    public void close() {
        kernels.forEach(PlannedKernel::close);
    }
}
