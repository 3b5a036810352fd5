package org.millrace.engine;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.config.Configuration;
import org.millrace.config.Configuration.Origin.Source;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.RankLetter;
import org.millrace.file.SharedDirectory;
import org.millrace.proxy.ProxyAgent;
import org.millrace.trace.CommunicatorTrace;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceName;
import org.millrace.trace.why.StallWatch;

/** What a process of the engine writes down besides its connections: each communicator's operations. */
final class EngineTrace implements AutoCloseable {

    /** Of NCCL's subsystems ENV and PROXY. */
    private static final Logger SETTINGS = LogManager.getLogger(Settings.class);
    private static final Logger PROXIES = LogManager.getLogger(ProxyAgent.class);
    private static final Map<Operation, TraceName> NAMES = new EnumMap<>(Operation.class);
    private static final TraceName SEND = TraceName.of("send");
    private static final TraceName RECEIVE = TraceName.of("receive");
    private static final int NONE = -1;

    static {
        for (Operation operation : Operation.values()) {
            NAMES.put(operation, TraceName.of(operation.label()));
        }
    }

    /** Null if nothing is written down. */
    private final @Nullable CommunicatorTrace trace;
    private final int channels;
    /** Guarded by the communicator. */
    private long collectives;

    /** Of one communicator. */
    EngineTrace(long number, ControlPlane control, int channels) {
        ProcessTrace process = ProcessTrace.current();
        this.channels = channels;
        trace = process == null ? null : process.communicator(number, control.rank(), control.size(), "");
    }

    /** A collective is enqueued. */
    void collective(Operation operation, long count, DataType type, int root) {
        if (trace != null) {
            trace.enqueued(NAMES.get(operation), collectives++, count * type.bytes(), count, type.code(), channels,
                    NONE, operation.hasRoot() ? root : NONE);
        }
    }

    /** A send or a receive is enqueued. */
    void transfer(boolean sends, long count, DataType type, int peer) {
        if (trace != null) {
            trace.enqueued(sends ? SEND : RECEIVE, NONE, count * type.bytes(), count, type.code(), 0, peer, NONE);
        }
    }

    @Override
    public void close() {
        if (trace != null) {
            trace.close();
        }
    }

    /** Opens this process's trace, if the first communicator's settings want one. */
    static void open(Configuration configuration, ControlPlane control) {
        boolean first = ProcessTrace.current() == null;
        ProcessTrace.open(configuration.get(Settings.TRACE_DIRECTORY).orElseGet(SharedDirectory::usual),
                ProcessTrace.Detail.valueOf(configuration.traceDetail().name()));
        ProcessTrace trace = ProcessTrace.current();
        if (first) {
            changed(configuration).forEach((name, value) -> SETTINGS.info("{} is {}", name, value));
            if (configuration.get(Settings.PROXY_TRACE).orElse(false)) {
                sayWhere(trace);
            }
        }
        if (first && trace != null) {
            trace.describe("engine, Java " + Runtime.version().feature(), control.rank(), control.size());
            trace.settings(changed(configuration));
            StallWatch.start(trace, configuration.get(Settings.STALL_REPORT),
                    sentence -> LogManager.getLogger(EngineTrace.class).warn("nothing moves. {}", sentence));
        }
    }

    /** To whoever set NCCL_PROXY_TRACE=1. */
    private static void sayWhere(@Nullable ProcessTrace trace) {
        if (trace == null) {
            PROXIES.warn("{}=1, and there is no room for what proxies would write down in {}",
                    Settings.PROXY_TRACE.name(), Settings.TRACE_DIRECTORY.name());
        } else {
            PROXIES.info("proxies write their steps to {}: millrace dump {} reads them", trace.path(),
                    ProcessHandle.current().pid());
        }
    }

    private static Map<String, String> changed(Configuration configuration) {
        Map<String, String> changed = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.all()) {
            if (configuration.origin(setting).source() != Source.DEFAULT) {
                changed.put(setting.name(), configuration.show(setting));
            }
        }
        return changed;
    }

    /** Collective: a number that rank 0 draws. */
    static long number(ControlPlane control) {
        byte[] mine = ByteBuffer.allocate(Long.BYTES).putLong(new SecureRandom().nextLong()).array();
        RankLetter drawn = new RankLetter(0, "the communicator's number", control.allGather(mine)[0]);
        long number = drawn.longNumber();
        drawn.end();
        return number;
    }
}
