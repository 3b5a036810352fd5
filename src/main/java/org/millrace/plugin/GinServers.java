package org.millrace.plugin;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.CudaRuntime;
import org.millrace.gin.GinOptions;

/** What GIN's groups share: a place in the network, and a thread for each device. Opened for the first that needs it, closed after the last. */
final class GinServers {

    /** {@code 0}: no GIN; {@code host}: for kernels that are played on the CPU, as tests do; anything else: for GPUs. */
    static final String CHOICE = "MILLRACE_GIN";
    /** {@code 0}: no memory of peers is mapped; all bytes are staged. */
    private static final String DIRECT = "MILLRACE_GIN_DIRECT";
    /** {@code 0}: what is staged travels over the network even between ranks of one host, not in memory that they share. */
    private static final String SHARED = "MILLRACE_GIN_SHARED";
    /** How many microseconds a kernel that makes small copies stays on the GPU after the last of them; {@code 0}: there is none. */
    private static final String COPY_KERNEL = "MILLRACE_GIN_COPY_KERNEL";
    private static final int LONGEST_LINGER = 1_000_000;

    private final UnaryOperator<String> environment;
    private final GinOptions options = GinOptions.defaults();
    private final Map<Integer, GinHardware> hardware = new HashMap<>();
    private Endpoint endpoint;
    private int endpointUsers;
    private int groups;

    GinServers(UnaryOperator<String> environment) {
        this.environment = environment;
    }

    GinOptions options() {
        return options;
    }

    private boolean onHost() {
        return "host".equals(environment.apply(CHOICE));
    }

    /** Why there is no GIN here, or null. */
    String problem() {
        if ("0".equals(environment.apply(CHOICE))) {
            return CHOICE + "=0";
        }
        if (onHost()) {
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

    synchronized Endpoint openEndpoint() {
        if (endpoint == null) {
            endpoint = Endpoint.open(environment);
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
    synchronized GinHardware acquire() {
        GinHardware found = onHost() ? hardware.computeIfAbsent(-1, none -> new GinOnHost(isOn(SHARED))) : onCuda();
        groups++;
        return found;
    }

    private boolean isOn(String variable) {
        return NcclInteger.parse(environment.apply(variable), 1) != 0;
    }

    private Duration linger() {
        return Duration.of(Math.clamp(NcclInteger.parse(environment.apply(COPY_KERNEL), 0), 0, LONGEST_LINGER), ChronoUnit.MICROS);
    }

    private GinHardware onCuda() {
        CudaRuntime runtime = CudaRuntime.load();
        int current = runtime.currentDevice();
        return hardware.computeIfAbsent(current, index -> {
            CudaDevice device = runtime.device(index);
            boolean direct = isOn(DIRECT);
            Duration linger = linger();
            NcclLog.info("GIN for " + device + ": windows of peers are " + (direct ? "mapped where that is possible" : "not mapped")
                    + (linger.isZero() ? "" : "; a kernel makes small copies, and stays for " + linger.toNanos() / 1000 + " us after the last"));
            return new GinOnCuda(CudaDriver.load(), device, direct, isOn(SHARED), options.chunkBytes(), linger);
        });
    }

    /** A group is closed; with the last one the threads end. */
    synchronized void release() {
        groups--;
        if (groups == 0) {
            hardware.values().forEach(GinHardware::close);
            hardware.clear();
        }
    }
}
