package org.millrace.plugin;

import java.lang.foreign.MemorySegment;

/** Where the shim arrives in a JVM, whether it started it or found it: called once, by JNI. */
public final class PluginEntry {

    private PluginEntry() {}

    /**
     * Fills the shim's tables.
     *
     * @param version         the interface that the shim was built for
     * @param installFunction address of its {@code millraceInstallUpcalls}
     * @return null, or why it cannot be done: one line
     */
    public static String start(int version, long installFunction) {
        if (version != ShimInterface.VERSION) {
            return "the plugin's interface is " + version + ", and that of the jar " + ShimInterface.VERSION
                    + ": they are of different releases; install both anew with 'millrace plugin install'";
        }
        try {
            int result = create().install(MemorySegment.ofAddress(installFunction));
            return result == NcclResult.SUCCESS ? null
                    : "the plugin refused its functions with NCCL's result " + result;
        } catch (Throwable e) {
            return NcclLog.describe(e);
        }
    }

    /** The plugin with what it is made of. */
    static PluginTables create() {
        NetPlugin net = new NetPlugin(PluginEntry::service);
        return new PluginTables(net, new TunerPlugin(net::takesOver), new GinPlugin(NativeEnvironment::get));
    }

    private static ConnectionService service(SettingsForNccl settings) {
        UnpackDevice unpack = UnpackDevice.of(UnpackSettings.read(NativeEnvironment::get));
        return settings.takeover() ? TakeoverService.start(NativeEnvironment::get, unpack)
                : new FallbackService(unpack);
    }
}
