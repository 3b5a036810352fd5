package org.millrace.plugin.gin;

import static org.millrace.config.Settings.CHECK;
import static org.millrace.config.Settings.GIN;
import static org.millrace.config.Settings.GIN_COPY_KERNEL;
import static org.millrace.config.Settings.GIN_DIRECT;
import static org.millrace.config.Settings.GIN_SHARED;
import static org.millrace.config.Settings.LINK;
import static org.millrace.config.Settings.LONGEST_COPY_KERNEL;
import static org.millrace.config.Settings.RECORD;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.config.Settings.Kernels;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.driver.CopyKernel;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.gin.GinOptions;
import org.millrace.net.FrameSender;
import org.millrace.net.connection.FullMesh;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.PluginTrace;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.trace.ProcessTrace;

/**
 * Resources that all {@link GinGroup groups of ranks} share: an endpoint in the network, and a thread for each device.
 * Each resource is opened for its first user and closed after its last user.
 */
final class GinResources {

    private final UnaryOperator<@Nullable String> environment;
    private final Map<Integer, GinDevice> devices = new HashMap<>();
    private @Nullable NetEndpoint endpoint;
    private int endpointUsers;
    private int groups;
    /**
     * Thread that writes frames for the devices' threads; null if no core is free for this thread, or if no group
     * exists.
     */
    private @Nullable SendHelper helper;
    private @Nullable GinSettings settings;

    /**
     * The user's settings of GIN. An unusable value does not disable GIN, because NCCL may need GIN. The log reports
     * the unusable value.
     *
     * @param kernels    kind of the kernels: on a GPU or emulated
     * @param direct     whether memory of peers is mapped; otherwise all bytes are staged
     * @param shared     whether bytes between ranks of one host are staged in memory that the ranks share; otherwise
     *                   these bytes use the network
     * @param linger     time that the kernel for small copies stays on the GPU after its last outgoing copy; zero if
     *                   copy engines make small copies
     * @param check      check of the payloads of frames
     * @param complaints lines for the log. Each line names an unusable value, the allowed values and the value used
     *                   instead
     */
    record GinSettings(Kernels kernels, boolean direct, boolean shared, Duration linger, PayloadCheck check,
            List<String> complaints) {

        private static final String ON = "it is on";

        static GinSettings of(Configuration settings) {
            List<String> complaints = new ArrayList<>();
            PayloadCheck check = settings.get(CHECK, PayloadCheck.OFF, "payloads are not checked", complaints::add);
            // Frames are required if a link is emulated or payloads are checked, because direct copies would bypass the
            // link and the check.
            boolean frames = settings.get(LINK).isPresent() || check != PayloadCheck.OFF;
            int stay = settings.text(GIN_COPY_KERNEL).matches("\\d{7,18}") ? LONGEST_COPY_KERNEL
                    : GIN_COPY_KERNEL.defaultValue();
            if (settings.isSet(RECORD)) {
                complaints.add(RECORD.name() + " records connections and operations, and no puts of GIN");
            }
            return new GinSettings(settings.get(GIN, Kernels.GPU, "GIN is there, for GPUs", complaints::add),
                    settings.get(GIN_DIRECT, true, ON, complaints::add) && !frames,
                    settings.get(GIN_SHARED, true, ON, complaints::add) && !frames,
                    Duration.of(settings.get(GIN_COPY_KERNEL, stay, "it is " + stay, complaints::add),
                            ChronoUnit.MICROS),
                    check, List.copyOf(complaints));
        }
    }

    GinResources(UnaryOperator<@Nullable String> environment) {
        this.environment = environment;
    }

    GinOptions options() {
        return GinOptions.defaults().withCheck(settings().check());
    }

    /**
     * Returns the settings. The first call reads the settings and logs the complaints. NCCL has passed its logger
     * before that call.
     */
    private synchronized GinSettings settings() {
        if (settings == null) {
            settings = GinSettings.of(Configuration.ofPlugin(environment));
            settings.complaints().forEach(NcclLog::warn);
        }
        return settings;
    }

    /** Returns the reason why GIN is not available; null if GIN is available. */
    @Nullable
    String problem() {
        if (settings().kernels() == Kernels.NONE) {
            return GIN.name() + "=0";
        }
        if (settings().kernels() == Kernels.HOST) {
            return null;
        }
        try {
            CudaRuntime.load();
            return CudaDriver.load().deviceCount() > 0 ? null : "there is no CUDA device";
        } catch (MillraceException e) {
            return e.getMessage();
        }
    }

    synchronized NetEndpoint openEndpoint() {
        if (endpoint == null) {
            Configuration settings = Configuration.ofPlugin(environment);
            // The network table has opened the trace already, unless NCCL's network is another plugin.
            if (ProcessTrace.current() == null) {
                PluginTrace.open(settings, "GIN");
            }
            endpoint = NetEndpoint.open(settings);
        }
        endpointUsers++;
        return endpoint;
    }

    /**
     * Sends descriptors from this process to itself, once, so that the serving code is compiled, see {@link GinWarmUp}.
     */
    void warmUp(GinDescriptorFormat format) {
        try {
            GinWarmUp.startOnce(this, format, settings().shared(),
                    !ProxyThreads.decide(Configuration.ofPlugin(environment)).ownCore());
        } catch (ConfigurationException e) {
            // The code that opens GIN's endpoint fails later and reports the error.
            NcclLog.info("GIN does not warm up: " + e.getMessage());
        }
    }

    synchronized void closeEndpoint() {
        endpointUsers--;
        if (endpointUsers == 0) {
            endpoint.close();
            endpoint = null;
        }
    }

    /**
     * Creates the idle strategy that the NCCL_PROXY_IDLE_* settings select. If a value is unusable, logs a warning and
     * uses the defaults.
     */
    private IdleStrategy newIdleStrategy(boolean onHost) {
        Configuration settings = Configuration.ofPlugin(environment);
        try {
            return IdleProfile.ginProxy(onHost, settings.ifSet(Settings.IDLE_THRESHOLD),
                    settings.get(Settings.IDLE_SLEEP_MICROS).map(micros -> micros * 1000L));
        } catch (ConfigurationException unusable) {
            NcclLog.warn(unusable.getMessage() + ". Here GIN's thread waits as if it were not set");
            return IdleProfile.ginProxy(onHost, Optional.empty(), Optional.empty());
        }
    }

    /**
     * Returns the object that serves the current device of the calling thread, for a new group. {@link #release} is the
     * counterpart.
     */
    synchronized GinDevice acquire() {
        GinDevice found =
                settings().kernels() == Kernels.HOST
                        ? devices.computeIfAbsent(-1,
                                none -> new HostGinDevice("gin-host", settings.shared(), newIdleStrategy(true)))
                        : onCuda();
        if (groups == 0 && hasCoreForHelper()) {
            helper = new SendHelper(IdleProfile.ginSender());
        }
        groups++;
        return found;
    }

    /** Returns whether a core is free for the helper's thread, in addition to the core of the device's thread. */
    private boolean hasCoreForHelper() {
        try {
            ProxyThreads threads = ProxyThreads.decide(Configuration.ofPlugin(environment));
            return threads.count() > 1 && threads.ownCore();
        } catch (ConfigurationException unusable) {
            return false; // Other code uses the same setting and reports the unusable value.
        }
    }

    /**
     * Returns a group's connections. Each sender that copies payloads on a processor is replaced by a sender that lets
     * the helper's thread write frames. Without a helper, the given connections are returned.
     */
    synchronized FullMesh helped(FullMesh data) {
        SendHelper helping = helper;
        if (helping == null) {
            return data;
        }
        FrameSender[] senders = data.senders().clone();
        for (int peer = 0; peer < senders.length; peer++) {
            if (senders[peer] != null && senders[peer].isProcessorBound()) {
                senders[peer] = helping.help(senders[peer]);
            }
        }
        return new FullMesh(senders, data.receivers());
    }

    private GinDevice onCuda() {
        CudaRuntime runtime = CudaRuntime.load();
        int current = runtime.currentDevice();
        return devices.computeIfAbsent(current, index -> {
            CudaDevice device = runtime.device(index);
            boolean direct = settings.direct();
            CopyKernel.Stay stay = CopyKernel.Stay.of(settings.linger());
            NcclLog.info("GIN for " + device + ": windows of peers are "
                    + (direct ? "mapped where that is possible" : "not mapped")
                    + (stay.linger().isZero() ? ""
                            : "; a kernel makes small copies, and stays for " + stay.linger().toNanos() / 1000
                                    + " us after the last outgoing copy"));
            return new CudaGinDevice(CudaDriver.load(), device, direct, settings.shared(), options().chunkBytes(), stay,
                    newIdleStrategy(false));
        });
    }

    /** Releases the resources of one group of ranks. The threads terminate with the last group. */
    synchronized void release() {
        groups--;
        if (groups == 0) {
            devices.values().forEach(GinDevice::close);
            devices.clear();
            if (helper != null) {
                helper.close();
                helper = null;
            }
        }
    }
}
