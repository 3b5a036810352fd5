package org.millrace.plugin.gin;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.CudaRuntime;
import org.millrace.gin.GinOptions;
import org.millrace.plugin.log.NcclLog;
import org.millrace.plugin.net.NetEndpoint;
import org.millrace.plugin.settings.GinSettings;

/**
 * What GIN's groups share: a place in the network, and a thread for each device. Opened for the first that needs it,
 * closed after the last.
 */
final class GinResources {

    private final UnaryOperator<String> environment;
    private final GinOptions options = GinOptions.defaults();
    private final Map<Integer, GinDevice> hardware = new HashMap<>();
    private NetEndpoint endpoint;
    private int endpointUsers;
    private int groups;
    private GinSettings settings;

    GinResources(UnaryOperator<String> environment) {
        this.environment = environment;
    }

    GinOptions options() {
        return options;
    }

    /** Read when NCCL has given its logger, so that what cannot be used is said, once. */
    private synchronized GinSettings settings() {
        if (settings == null) {
            settings = GinSettings.read(environment);
            settings.complaints().forEach(NcclLog::warn);
        }
        return settings;
    }

    /** Why there is no GIN here, or null. */
    String problem() {
        if (!settings().wanted()) {
            return GinSettings.CHOICE + "=0";
        }
        if (settings().onHost()) {
            return null;
        }
        try {
            CudaDriver.load();
            CudaRuntime.load().deviceCount();
            return null;
        } catch (MillraceException e) {
            return e.getMessage();
        }
    }

    synchronized NetEndpoint openEndpoint() {
        if (endpoint == null) {
            endpoint = NetEndpoint.open(environment);
        }
        endpointUsers++;
        return endpoint;
    }

    synchronized void closeEndpoint() {
        endpointUsers--;
        if (endpointUsers == 0) {
            endpoint.close();
            endpoint = null;
        }
    }

    /** What serves the device that is current on the calling thread. */
    synchronized GinDevice acquire() {
        GinDevice found =
                settings().onHost() ? hardware.computeIfAbsent(-1, none -> new HostGinDevice(settings.shared()))
                        : onCuda();
        groups++;
        return found;
    }

    private GinDevice onCuda() {
        CudaRuntime runtime = CudaRuntime.load();
        int current = runtime.currentDevice();
        return hardware.computeIfAbsent(current, index -> {
            CudaDevice device = runtime.device(index);
            boolean direct = settings.direct();
            Duration linger = settings.linger();
            NcclLog.info("GIN for " + device + ": windows of peers are "
                    + (direct ? "mapped where that is possible" : "not mapped")
                    + (linger.isZero() ? ""
                            : "; a kernel makes small copies, and stays for " + linger.toNanos() / 1000
                                    + " us after the last"));
            return new CudaGinDevice(CudaDriver.load(), device, direct, settings.shared(), options.chunkBytes(),
                    linger);
        });
    }

    /** A group is closed; with the last one the threads end. */
    synchronized void release() {
        groups--;
        if (groups == 0) {
            hardware.values().forEach(GinDevice::close);
            hardware.clear();
        }
    }
}
