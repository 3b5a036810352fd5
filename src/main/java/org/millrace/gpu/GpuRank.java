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
import org.millrace.config.Configuration;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.GroupFailure;
import org.millrace.engine.bootstrap.JoinOptions;
import org.millrace.engine.bootstrap.Machine;
import org.millrace.engine.bootstrap.RankLetter;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclLibrary;
import org.millrace.nccl.UniqueId;
import org.millrace.plugin.InProcessPlugin;

/** A rank that has met the others: a GPU, NCCL's communicator, and the control plane beside it. */
record GpuRank(Libraries libraries, ControlPlane control, GroupFailure failure, CudaDevice device,
        NcclCommunicator nccl, Duration patience) {

    private static final long LOOK_MILLIS = 20;

    /** Both libraries, loaded from where the settings say. */
    record Libraries(CudaRuntime cuda, NcclLibrary nccl) {

        static Libraries load(Configuration configuration) {
            CudaRuntime cuda =
                    CudaRuntime.load(configuration.get(Settings.CUDART_LIBRARY).map(Object::toString).orElse(null));
            return new Libraries(cuda,
                    NcclLibrary.load(configuration.get(Settings.NCCL_LIBRARY).map(Object::toString).orElse(null)));
        }
    }

    /** The part of joining before others are met. */
    static Libraries prepare(Configuration configuration) {
        Libraries libraries = Libraries.load(configuration);
        libraries.cuda().deviceCount(); // a rank without a GPU says so before it keeps others waiting
        InProcessPlugin.configure(variables(configuration));
        InProcessPlugin.activate();
        return libraries;
    }

    /**
     * The settings that somebody has set, as environment variables: libnccl, and the plugin that it loads, know of no
     * system properties and of no sizes with units.
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

    /** The part of joining that other ranks take part in. */
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
            NcclCommunicator nccl = bounded("ncclCommInitRank of rank " + rank, patience, failure,
                    () -> libraries.nccl().join(device, id, size, rank));
            return new GpuRank(libraries, control, failure, device, nccl, patience);
        } catch (RuntimeException | Error thrown) {
            control.fail(thrown);
            control.close();
            throw thrown;
        }
    }

    /** The same rank in a communicator of some of the ranks; empty for a rank that gets none. */
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

    /** Makes a call of NCCL's that waits for the other ranks; ends the wait when one of them has failed. */
    <T> T bounded(String function, Callable<T> call) {
        return bounded(function + " of rank " + control.rank(), patience, failure, () -> {
            try (CurrentDevice _ = device.makeCurrent()) { // for the thread that makes the call
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
     * Makes a call of NCCL's that waits for other ranks without a deadline, on a thread of its own. (NCCL has
     * communicators whose calls do not wait, but starts a thread for each of their operations.) If it is given up, that
     * thread stays behind until the call returns, if it ever does: NCCL has no way to take it back.
     *
     * @param look called again and again meanwhile; ends the wait by throwing
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
                            CommunicatorException.NOBODY, CommunicatorException.NOBODY, what, null);
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
