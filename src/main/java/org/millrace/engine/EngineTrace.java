package org.millrace.engine;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import org.millrace.config.Configuration;
import org.millrace.config.Configuration.Origin.Source;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.file.SharedDirectory;
import org.apache.logging.log4j.LogManager;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.why.StallWatch;

/** What a process of the engine writes down besides its connections. */
final class EngineTrace {

    private EngineTrace() {}

    /** Opens this process's trace, if the first communicator's settings want one. */
    static void open(Configuration configuration, ControlPlane control) {
        boolean first = ProcessTrace.current() == null;
        ProcessTrace.open(configuration.get(Settings.TRACE_DIRECTORY).orElseGet(SharedDirectory::usual),
                ProcessTrace.Detail.valueOf(configuration.get(Settings.TRACE).name()));
        ProcessTrace trace = ProcessTrace.current();
        if (first && trace != null) {
            trace.describe("engine, Java " + Runtime.version().feature(), control.rank(), control.size());
            trace.settings(changed(configuration));
            StallWatch.start(trace, configuration.get(Settings.STALL_REPORT),
                    sentence -> LogManager.getLogger(EngineTrace.class).warn("nothing moves. {}", sentence));
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
        return ByteBuffer.wrap(control.allGather(mine)[0]).getLong();
    }
}
