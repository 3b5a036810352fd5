package org.millrace.engine;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.RankLetter;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.device.EmulatedDevice;
import org.millrace.file.SharedDirectory;
import org.millrace.net.connection.SilenceWatch;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.spi.ProxyException.DisagreementException;
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.StallWatch;

/** Trace of one communicator's operations. Connections are traced separately. */
final class EngineTrace implements AutoCloseable {

    /** Loggers of NCCL's subsystems ENV and PROXY. */
    private static final Logger SETTINGS = LogManager.getLogger(Settings.class);
    private static final Logger PROXIES = LogManager.getLogger(ProxyAgent.class);

    /** Trace of the communicator; null if tracing is off. */
    private final @Nullable CommunicatorTrace trace;
    private @Nullable OperationTrace operations;

    EngineTrace(long number, ControlPlane control) {
        ProcessTrace process = ProcessTrace.current();
        trace = process == null ? null : process.communicator(number, control.rank(), control.size(), "");
    }

    /** Returns a trace of the operations launched on a device. This object closes the returned trace. */
    OperationTrace operations(EmulatedDevice device) {
        operations = new OperationTrace(ProcessTrace.current(), trace, device);
        return operations;
    }

    /** Records that the communicator has failed. */
    void failed(Throwable why) {
        if (trace != null) {
            if (why.getCause() instanceof DisagreementException disagreement) {
                trace.disagrees(disagreement.connection().peerRank(), disagreement.collective());
            }
            trace.failed(String.valueOf(why.getMessage()));
        }
    }

    @Override
    public void close() {
        if (operations != null) {
            operations.close();
        }
        if (trace != null) {
            trace.close();
        }
    }

    /**
     * Opens this process's trace, if it is enabled. Called before the join, so that the trace shows a join that hangs.
     * The settings of the process's first communicator apply. Callable from any thread.
     */
    static synchronized void open(Configuration configuration, int rank, int size) {
        boolean first = ProcessTrace.current() == null;
        Settings.TraceDetail detail = configuration.traceDetail();
        if (detail != Settings.TraceDetail.OFF) {
            ProcessTrace.open(configuration.get(Settings.TRACE_DIRECTORY).orElseGet(SharedDirectory::usual),
                    detail == Settings.TraceDetail.STEPS);
        }
        ProcessTrace trace = ProcessTrace.current();
        if (first) {
            changed(configuration).forEach((name, value) -> SETTINGS.info("{} is {}", name, value));
            if (configuration.get(Settings.PROXY_TRACE).orElse(false)) {
                sayWhere(trace);
            }
        }
        if (first && trace != null) {
            trace.describe("engine, Java " + Runtime.version().feature(), rank, size);
            trace.settings(changed(configuration));
            StallWatch.start(trace, configuration.get(Settings.STALL_REPORT),
                    LogManager.getLogger(EngineTrace.class)::warn);
            SilenceWatch.start(trace);
        }
    }

    /** Logs the location of the trace, for a user who set NCCL_PROXY_TRACE=1. */
    private static void sayWhere(@Nullable ProcessTrace trace) {
        if (trace == null) {
            PROXIES.warn("{}=1, and there is no room for the steps of proxies in {}", Settings.PROXY_TRACE.name(),
                    Settings.TRACE_DIRECTORY.name());
        } else {
            PROXIES.info("proxies write their steps to {}: millrace dump {} reads them", trace.path(),
                    ProcessHandle.current().pid());
        }
    }

    private static Map<String, String> changed(Configuration configuration) {
        Map<String, String> changed = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.ofPrograms()) {
            if (configuration.isSet(setting)) {
                changed.put(setting.name(), configuration.show(setting));
            }
        }
        return changed;
    }

    /** Returns a random number that rank 0 draws. All ranks must call this method. */
    static long number(ControlPlane control) {
        byte[] mine = ByteBuffer.allocate(Long.BYTES).putLong(new SecureRandom().nextLong()).array();
        RankLetter drawn = new RankLetter(0, "the communicator's number", control.allGather(mine)[0]);
        long number = drawn.longNumber();
        drawn.end();
        return number;
    }
}
