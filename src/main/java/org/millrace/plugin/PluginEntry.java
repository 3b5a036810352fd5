package org.millrace.plugin;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.Kernels;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.nccl.NcclResult;
import org.millrace.plugin.fallback.FallbackPath;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.UnpackDevice;
import org.millrace.plugin.takeover.DeviceSlots;
import org.millrace.plugin.takeover.TakeoverPath;
import org.millrace.plugin.takeover.TakeoverService;

/** Entry point for the shim into a JVM that the shim started or found. The shim calls this class once, by JNI. */
final class PluginEntry {

    private PluginEntry() {}

    /** Fills the shim's tables. Returns null, or one line with the reason of a failure. */
    public static @Nullable String start(int version, long installFunction) {
        if (version != Upcalls.VERSION) {
            return "the plugin's interface is " + version + ", and that of the jar " + Upcalls.VERSION
                    + ": they are of different releases; install both anew with 'millrace plugin install'";
        }
        String unfit = RuntimeModules.problemHere();
        if (unfit != null) {
            return unfit;
        }
        try {
            int result = new Upcalls(tables()).install(MemorySegment.ofAddress(installFunction));
            return result == NcclResult.SUCCESS.code() ? null
                    : "the plugin refused its functions with NCCL's result " + result;
        } catch (Throwable e) {
            return NcclLog.describe(e);
        }
    }

    static PluginTables tables() {
        return PluginTables.create(PluginEntry::path);
    }

    private static DataPath path(PluginConfiguration settings) {
        UnpackDevice unpack = settings.unpack() == Kernels.NONE ? null
                : new UnpackDevice(settings.unpack() == Kernels.HOST, settings.bounceBytes());
        return settings.takeover()
                ? new TakeoverPath(
                        new TakeoverService(settings.nccl(), settings.threads(),
                                processes -> ProxyThreads.decide(Configuration.ofPlugin(NativeEnvironment::get),
                                        settings.deviceSlots(), processes),
                                settings.deviceSlots() ? new DeviceSlots(CudaDriver.load()) : null, settings.check()),
                        unpack)
                : new FallbackPath(unpack, settings.maxRecvs(), settings.check());
    }
}
