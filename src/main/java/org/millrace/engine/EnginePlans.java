package org.millrace.engine;

import java.util.List;
import org.millrace.OperationGroup;
import org.millrace.Plan;
import org.millrace.Stream;
import org.millrace.device.stream.EmulatedDevice;
import org.millrace.device.stream.WorkLauncher;
import org.millrace.engine.plan.LaunchQueue;
import org.millrace.engine.plan.LaunchQueue.Recorded;

/** A communicator's plans: operations whose work is placed once, in memory that stays, and launched again and again. */
final class EnginePlans {

    private final CallGuard guard;
    private final LaunchQueue launches;
    private final WorkLauncher launcher;
    private final EmulatedDevice device;
    private final Object lock;

    /** @param lock of all that uses the queue */
    EnginePlans(CallGuard guard, LaunchQueue launches, WorkLauncher launcher, EmulatedDevice device, Object lock) {
        this.guard = guard;
        this.launches = launches;
        this.launcher = launcher;
        this.device = device;
        this.lock = lock;
    }

    /** Makes a plan of what is called, of which nothing runs now. With the lock. */
    Plan record(Stream stream, Runnable operations) {
        guard.requireNoGroup("a plan is made", launches);
        guard.requireNoCapture("a plan is made", stream, List.of());
        launches.begin();
        try {
            OperationGroup.record(operations);
            Recorded recorded = launches.record(stream);
            recorded.kernels().forEach(kernel -> launcher.keep(kernel.kernel()));
            return new EnginePlan(this, recorded);
        } finally {
            launches.endsGroup();
            launches.forget();
        }
    }

    private void launch(Recorded recorded, Stream stream) {
        guard.checkOpen(stream);
        synchronized (lock) {
            guard.requireNoGroup("a plan is launched", launches);
            guard.checkOpen();
            recorded.others().forEach(device::check);
            guard.requireNoCapture("a plan is launched", stream, recorded.others());
            launches.launch(recorded, stream);
        }
    }

    private record EnginePlan(EnginePlans plans, Recorded recorded) implements Plan {

        @Override
        public void launch(Stream stream) {
            plans.launch(recorded, stream);
        }

        @Override
        public void close() {
            recorded.kernels().forEach(kernel -> plans.launcher.release(kernel.kernel()));
        }
    }
}
