package org.millrace.plugin;

import static org.millrace.config.Settings.GIN;
import static org.millrace.config.Settings.GIN_COPY_KERNEL;
import static org.millrace.config.Settings.GIN_DIRECT;
import static org.millrace.config.Settings.GIN_SHARED;
import static org.millrace.config.Settings.LINK;
import static org.millrace.config.Settings.RECORD;
import static org.millrace.config.Settings.LONGEST_COPY_KERNEL;

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
import org.millrace.abi.GinDescriptorFormat;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings.Kernels;
import org.millrace.config.Settings;
import org.millrace.cuda.CopyKernel;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.CudaRuntime;
import org.millrace.gin.GinOptions;
import org.millrace.net.FrameSender;
import org.millrace.net.FullMesh;
import org.millrace.trace.ProcessTrace;

/**
 * What GIN's groups share: a place in the network, and a thread for each device. Opened for the first that needs it,
 * closed after the last.
 */
final class GinResources {

    private final UnaryOperator<@Nullable String> environment;
    private final GinOptions options = GinOptions.defaults();
    private final Map<Integer, GinDevice> devices = new HashMap<>();
    private @Nullable NetEndpoint endpoint;
    private int endpointUsers;
    private int groups;
    /** Writes frames for the devices' threads; null if there are no cores for it, or no groups. */
    private @Nullable SendHelper helper;
    private @Nullable GinSettings settings;

    /**
     * What the user wants of GIN. A value that is not usable is not taken in silence: GIN is there all the same, as
     * NCCL may need it, and a complaint says so.
     *
     * @param kernels    which are served
     * @param direct     whether memory of peers is mapped; all bytes are staged otherwise
     * @param shared     whether what is staged between ranks of one host lies in memory that they share; it travels
     *                   over the network otherwise
     * @param linger     how long a kernel that makes small copies stays on the GPU after the last of them; zero: there
     *                   is none
     * @param complaints what was not usable, what is allowed, and what is taken instead
     */
    record GinSettings(Kernels kernels, boolean direct, boolean shared, Duration linger, List<String> complaints) {

        private static final String ON = "it is on";

        static GinSettings of(Configuration settings) {
            List<String> complaints = new ArrayList<>();
            boolean link = settings.get(LINK).isPresent(); // which direct copies would pass by
            int stay = settings.text(GIN_COPY_KERNEL).matches("\\d{7,18}") ? LONGEST_COPY_KERNEL
                    : GIN_COPY_KERNEL.defaultValue();
            if (settings.isSet(RECORD)) {
                complaints.add(RECORD.name() + " records connections and operations, and no puts of GIN");
            }
            return new GinSettings(settings.get(GIN, Kernels.GPU, "GIN is there, for GPUs", complaints::add),
                    settings.get(GIN_DIRECT, true, ON, complaints::add) && !link,
                    settings.get(GIN_SHARED, true, ON, complaints::add) && !link,
                    Duration.of(settings.get(GIN_COPY_KERNEL, stay, "it is " + stay, complaints::add),
                            ChronoUnit.MICROS),
                    List.copyOf(complaints));
        }
    }

    GinResources(UnaryOperator<@Nullable String> environment) {
        this.environment = environment;
    }

    GinOptions options() {
        return options;
    }

    /** Read when NCCL has given its logger, so that what cannot be used is said, once. */
    private synchronized GinSettings settings() {
        if (settings == null) {
            settings = GinSettings.of(Configuration.ofPlugin(environment));
            settings.complaints().forEach(NcclLog::warn);
        }
        return settings;
    }

    /** Why there is no GIN here; null if there is. */
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
            if (ProcessTrace.current() == null) { // NCCL's network is another plugin
                PluginTrace.open(settings, "GIN");
            }
            endpoint = NetEndpoint.open(settings);
        }
        endpointUsers++;
        return endpoint;
    }

    /** Sends descriptors from this process to itself, once, so that what serves them is compiled: see GinWarmUp. */
    void warmUp(GinDescriptorFormat format) {
        try {
            GinWarmUp.startOnce(this, format, settings().shared(),
                    !ProxyThreads.decide(Configuration.ofPlugin(environment)).ownCore());
        } catch (ConfigurationException e) {
            NcclLog.info("GIN does not warm up: " + e.getMessage()); // who needs the setting says so, and ends
        }
    }

    synchronized void closeEndpoint() {
        endpointUsers--;
        if (endpointUsers == 0) {
            endpoint.close();
            endpoint = null;
        }
    }

    /** As NCCL_PROXY_IDLE_* say, or, where they cannot be read, as if they were not set, which is said. */
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

    /** What serves the device that is current on the calling thread. */
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

    /** Whether a second thread of GIN's may have a core for itself. */
    private boolean hasCoreForHelper() {
        try {
            ProxyThreads threads = ProxyThreads.decide(Configuration.ofPlugin(environment));
            return threads.count() > 1 && threads.ownCore();
        } catch (ConfigurationException unusable) {
            return false; // who needs the setting says so, and ends
        }
    }

    /** Connections of a group, with a second thread that writes frames where a processor copies them. */
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
                                    + " us after the last"));
            return new CudaGinDevice(CudaDriver.load(), device, direct, settings.shared(), options.chunkBytes(), stay,
                    newIdleStrategy(false));
        });
    }

    /** A group is closed; with the last one the threads end. */
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
