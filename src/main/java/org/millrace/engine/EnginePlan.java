package org.millrace.engine;

import java.util.List;
import org.millrace.Plan;
import org.millrace.Stream;
import org.millrace.device.work.KernelPlan;

/** Operations whose work was placed once, in memory that stays. */
final class EnginePlan implements Plan {

    private final EngineCommunicator communicator;
    private final List<KernelPlan> kernels;

    EnginePlan(EngineCommunicator communicator, List<KernelPlan> kernels) {
        this.communicator = communicator;
        this.kernels = kernels;
    }

    @Override
    public void launch(Stream stream) {
        communicator.launch(kernels, stream);
    }

    @Override
    public void close() {
        kernels.forEach(KernelPlan::close);
    }
}
