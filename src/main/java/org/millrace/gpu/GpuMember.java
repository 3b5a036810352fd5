package org.millrace.gpu;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.Callable;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CurrentDevice;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.GroupFailure;
import org.millrace.engine.bootstrap.JoinOptions;
import org.millrace.engine.bootstrap.Machine;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.UniqueId;

/** A rank that has met the others: a GPU, NCCL's communicator, and the control plane beside it. */
record GpuMember(Libraries libraries, ControlPlane control, GroupFailure failure, CudaDevice device,
        NcclCommunicator nccl, Duration patience) {

    /** The part of joining that other ranks take part in. */
    static GpuMember meet(Libraries libraries, String rendezvous, int rank, int size, Configuration configuration) {
        Duration patience = configuration.get(Settings.CONNECT_DEADLINE);
        ControlPlane control = ControlPlane.join(rendezvous, rank, size, JoinOptions.of(configuration));
        try {
            int local = placeOnMachine(control);
            CudaDevice device = libraries.cuda().device(local % libraries.cuda().deviceCount());
            UniqueId id = UniqueId
                    .of(control.allGather(rank == 0 ? libraries.nccl().newUniqueId().toBytes() : new byte[0])[0]);
            GroupFailure failure = new GroupFailure(control);
            NcclCommunicator nccl = bounded("ncclCommInitRank of rank " + rank, patience, failure,
                    () -> libraries.nccl().join(device, id, size, rank));
            return new GpuMember(libraries, control, failure, device, nccl, patience);
        } catch (RuntimeException | Error thrown) {
            control.fail(String.valueOf(thrown.getMessage()));
            control.close();
            throw thrown;
        }
    }

    /** Makes a call of NCCL's that waits for the other ranks; ends the wait when one of them has failed. */
    <T> T bounded(String function, Callable<T> call) {
        return bounded(function + " of rank " + control.rank(), patience, failure, () -> {
            try (CurrentDevice _ = device.makeCurrent()) { // for the thread that makes the call
                return call.call();
            }
        });
    }

    private static <T> T bounded(String what, Duration patience, GroupFailure failure, Callable<T> call) {
        return Bounded.call(what, patience, () -> {
            failure.watch();
            failure.throwIfFailed();
        }, call);
    }

    /** How many ranks with lower numbers run on this machine: they have its first GPUs. Collective. */
    private static int placeOnMachine(ControlPlane control) {
        byte[] mine = Machine.kernel().getBytes(StandardCharsets.UTF_8);
        byte[][] all = control.allGather(mine);
        int place = 0;
        for (int rank = 0; rank < control.rank(); rank++) {
            place += Arrays.equals(mine, all[rank]) ? 1 : 0;
        }
        return place;
    }
}
