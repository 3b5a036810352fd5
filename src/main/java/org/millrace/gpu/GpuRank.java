package org.millrace.gpu;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.millrace.CommunicatorException;
import org.millrace.CommunicatorListener;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.bootstrap.JoinOptions;
import org.millrace.bootstrap.Machine;
import org.millrace.bootstrap.RankLetter;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclLibrary;
import org.millrace.nccl.UniqueId;
import org.millrace.plugin.InProcessPlugin;
import org.millrace.trace.JoinTrace;

/**
 * A rank that has joined the other ranks: its libraries, control plane, GPU and NCCL communicator.
 *
 * @param control  connections over which ranks exchange data and report failures
 * @param failure  first failure of the communicator
 * @param patience maximum duration of an NCCL call that waits for other ranks
 */
record GpuRank(Libraries libraries, ControlPlane control, GroupFailure failure, CudaDevice device,
        NcclCommunicator nccl, Duration patience) {

    private static final long LOOK_MILLIS = 20;

    /** The CUDA runtime and NCCL, loaded from the paths in the settings. */
    record Libraries(CudaRuntime cuda, NcclLibrary nccl) {

        static Libraries load(Configuration configuration) {
            CudaRuntime cuda =
                    CudaRuntime.load(configuration.get(Settings.CUDART_LIBRARY).map(Object::toString).orElse(null));
            return new Libraries(cuda,
                    NcclLibrary.load(configuration.get(Settings.NCCL_LIBRARY).map(Object::toString).orElse(null)));
        }
    }

    /**
     * Prepares this rank for the join, without any other rank: loads the libraries, checks for a GPU and configures the
     * plugin.
     */
    static Libraries prepare(Configuration configuration) {
        Libraries libraries = Libraries.load(configuration);
        // If this rank has no GPU, this call throws before other ranks wait for this rank.
        libraries.cuda().deviceCount();
        InProcessPlugin.configure(variables(configuration));
        InProcessPlugin.activate();
        return libraries;
    }

    /**
     * Returns the settings that the user has set, as environment variables for libnccl and the plugin that libnccl
     * loads. The two libraries accept environment variables and plain numbers only, so system properties and sizes with
     * units are converted.
     */
    static Map<String, String> variables(Configuration configuration) {
        Map<String, String> variables = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.ofPrograms()) {
            if (configuration.isSet(setting) && !setting.secret()) {
                variables.put(setting.name(), text(setting, configuration));
            }
        }
        return variables;
    }

    private static String text(Setting<?> setting, Configuration configuration) {
        Object value =
                configuration.get(setting) instanceof Optional<?> optional && optional.isPresent() ? optional.get()
                        : configuration.get(setting);
        return switch (value) {
            case Number number -> number.toString();
            case Boolean flag -> flag ? "1" : "0";
            default -> configuration.show(setting);
        };
    }

    /** Joins the other ranks: connects the control plane, chooses the GPU, and joins NCCL's communicator. */
    static GpuRank meet(Libraries libraries, String rendezvous, int rank, int size, Configuration configuration,
            CommunicatorListener listener) {
        Duration patience = configuration.get(Settings.CONNECT_DEADLINE);
        ControlPlane control = ControlPlane.join(rendezvous, rank, size, JoinOptions.of(configuration, listener));
        try {
            int local = placeOnMachine(control);
            CudaDevice device = libraries.cuda().device(local % libraries.cuda().deviceCount());
            RankLetter letter = new RankLetter(0, "NCCL's unique id",
                    control.allGather(rank == 0 ? libraries.nccl().newUniqueId().toBytes() : new byte[0])[0]);
            UniqueId id = UniqueId.of(letter.bytes("an id", UniqueId.BYTES));
            letter.end();
            GroupFailure failure = new GroupFailure(control);
            try (JoinTrace _ = JoinTrace.connecting(0, rank, System.nanoTime(),
                    "ncclCommInitRank waits for the other ranks of " + rendezvous)) {
                NcclCommunicator nccl = bounded("ncclCommInitRank of rank " + rank, patience, failure,
                        () -> libraries.nccl().join(device, id, size, rank));
                return new GpuRank(libraries, control, failure, device, nccl, patience);
            }
        } catch (RuntimeException | Error thrown) {
            control.fail(thrown);
            control.close();
            throw thrown;
        }
    }

    /**
     * Splits the communicator. Returns this rank in its new communicator; empty if this rank belongs to no new
     * communicator.
     */
    Optional<GpuRank> split(int color, int key) {
        ControlPlane group = control.split(color, key);
        try {
            Optional<NcclCommunicator> child = bounded("ncclCommSplit", () -> nccl.split(color, key, null));
            return group == null ? Optional.empty()
                    : Optional.of(new GpuRank(libraries, group, new GroupFailure(group), device, child.orElseThrow(),
                            patience));
        } catch (RuntimeException | Error thrown) {
            if (group != null) {
                group.fail(thrown);
                group.close();
            }
            throw thrown;
        }
    }

    /**
     * Makes an NCCL call that waits for the other ranks. Throws if one of the ranks fails during the wait, or if the
     * deadline passes.
     */
    <T> T bounded(String function, Callable<T> call) {
        return bounded(function + " of rank " + control.rank(), patience, failure, () -> {
            // The call runs on a new thread, which has no current device yet.
            try (CurrentDevice _ = device.makeCurrent()) {
                return call.call();
            }
        });
    }

    private static <T> T bounded(String what, Duration patience, GroupFailure failure, Callable<T> call) {
        return bounded(what, patience, () -> {
            failure.watch();
            failure.throwIfFailed();
        }, call);
    }

    /**
     * Makes an NCCL call that may wait for other ranks without a deadline. The call runs on a separate thread. NCCL
     * also has non-blocking communicators, but NCCL starts a thread for each operation of such a communicator. If the
     * deadline passes, the call's thread remains until the call returns, possibly forever, because NCCL cannot cancel
     * the call.
     *
     * @param what description of the call in messages
     * @param look function that this method calls repeatedly during the wait; an exception of this function ends the
     *             wait
     */
    static <T> T bounded(String what, Duration deadline, Runnable look, Callable<T> call) {
        FutureTask<T> task = new FutureTask<>(call);
        Thread.ofPlatform().daemon().name(what).start(task);
        long start = System.nanoTime();
        while (true) {
            try {
                return task.get(LOOK_MILLIS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException notYet) {
                look.run();
                if (System.nanoTime() - start > deadline.toNanos()) {
                    throw new DeadlineException(
                            what + " did not return within " + deadline.toMillis()
                                    + " ms: a rank does not make the same call,"
                                    + " or cannot be reached by the interface that NCCL chose"
                                    + " (NCCL_SOCKET_IFNAME picks another; NCCL_DEBUG=INFO shows what NCCL does)",
                            CommunicatorException.NO_RANK, CommunicatorException.NO_RANK, what, null);
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new MillraceException(what + ": interrupted while waiting for it", interrupted);
            } catch (ExecutionException thrown) {
                throw rethrow(what, thrown.getCause());
            }
        }
    }

    private static RuntimeException rethrow(String what, Throwable cause) {
        return cause instanceof RuntimeException unchecked ? unchecked
                : new MillraceException(what + " failed: " + cause, cause);
    }

    /**
     * Returns how many ranks on this machine have a lower number than this rank. The result determines this rank's GPU.
     * All ranks must call this method.
     */
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
